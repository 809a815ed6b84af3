import { z } from 'zod'
import { modelAllowed } from '../../../core/accounts/model-allowed.ts'
import { integer, number, string } from '../../../core/schemas/fields.ts'
import { requireMachineOwner } from '../../http/access/machine-owner.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { type HistorySample, historyIntervalMs, type ModelActivityCounts } from '../../metrics/history.ts'

const route = routeOf({ tag: 'System' })

const rates = {
  requests_per_second: number('Requests and jobs that ended, per second.'),
  failures_per_second: number('Those of them that failed, per second.'),
  input_tokens_per_second: number('Prompt tokens per second.'),
  output_tokens_per_second: number('Generated tokens per second.'),
}

const SystemHistory = z
  .object({
    object: z.literal('system.history'),
    interval_seconds: integer('Length of an interval.'),
    samples: z
      .array(
        z.object({
          time: number('Unix seconds of the end of the interval, with milliseconds.'),
          ...rates,
          models: z
            .array(z.object({ model_id: string('Id of the model.'), ...rates }))
            .describe('The same by model, of those that did something.'),
        }),
      )
      .describe('Intervals of the last hour, oldest first. They are kept in memory: a restart begins anew.'),
  })
  .meta({ id: 'SystemHistory', description: 'What the models did in the last hour.' })

const round = (value: number): number => Math.round(value * 100) / 100

function ratesOf(models: readonly ModelActivityCounts[], elapsedMs: number) {
  const perSecond = (of: (counts: ModelActivityCounts) => number): number =>
    round(models.reduce((sum, one) => sum + of(one), 0) / (elapsedMs / 1_000))
  return {
    requests_per_second: perSecond(one => one.requests),
    failures_per_second: perSecond(one => one.failed),
    input_tokens_per_second: perSecond(one => one.inputTokens),
    output_tokens_per_second: perSecond(one => one.outputTokens),
  }
}

function sampleOf({ at, elapsedMs, models }: HistorySample, allowed: (modelId: string) => boolean) {
  const visible = models.filter(({ modelId }) => allowed(modelId))
  return {
    time: at / 1_000,
    ...ratesOf(visible, elapsedMs),
    models: visible.map(one => ({ model_id: one.modelId, ...ratesOf([one], elapsedMs) })),
  }
}

/** The route behind the charts of the console. */
export const systemHistoryRoutes = ({ history }: Pick<Owners, 'history'>) => [
  route('GET /api/system/history', 'admin:read', {
    summary: 'Get system history',
    description:
      'Returns requests and tokens per second of the last hour, in intervals of 10 s. With `after` only the intervals that ended later: send the `time` of the last one. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch'],
    query: z.strictObject({
      after: z.coerce.number().min(0).default(0).describe('Unix seconds. Only intervals that ended after it.'),
    }),
    response: SystemHistory,
    handle: ({ query }, call) => {
      requireMachineOwner(call, 'The history of this server is')
      const allowed = (modelId: string) => modelAllowed(call.caller.token.models, modelId)
      return {
        object: 'system.history' as const,
        interval_seconds: historyIntervalMs / 1_000,
        samples: history.since(Math.round(query.after * 1_000)).map(one => sampleOf(one, allowed)),
      }
    },
  }),
]
