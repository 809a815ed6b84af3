import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { modelAllowed } from '../../core/accounts/accounts.ts'
import { Failure } from '../../core/failure.ts'
import type { Model } from '../../core/models/model.ts'
import { didYouMean, nearestModels } from '../../core/nearest.ts'
import type { Call } from '../call.ts'
import { admitOwner } from '../machine-owner.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { ModelStatus, statusOf } from './model-status.ts'
import { EngineStatus, engineOf } from './status.ts'

const tag = 'Models'
const One = z.object({ id: z.string() })
const Wait = z.strictObject({
  wait: z.coerce.number().min(0).max(120).default(1).describe('Seconds after which the answer comes in any case.'),
})

const ModelEngine = EngineStatus.extend({
  command: z.array(z.string()).describe('Program and arguments; empty where it runs elsewhere.'),
}).meta({ id: 'ModelEngine' })

const ModelDetail = z
  .object({
    id: z.string(),
    object: z.literal('model.detail'),
    settings: z
      .record(z.string(), z.unknown())
      .describe('As in infer.yaml, with the defaults filled in. Values of environment variables are left out.'),
    status: ModelStatus,
    engines: z.array(ModelEngine),
  })
  .meta({ id: 'ModelDetail' })

/** Where a model lies and how it is run is told to its owner; and who unloads it takes it from everybody. */
function find(id: string, call: Call, { registry }: Pick<Owners, 'registry'>): Model {
  admitOwner(call, 'Settings and engines of models are')
  const model = registry.find(id)
  if (model && modelAllowed(call.caller.token.models, id)) return model
  const visible = registry.all().filter(other => modelAllowed(call.caller.token.models, other.id))
  const meant = nearestModels(
    id,
    visible.map(other => other.id),
  )
  throw new Failure(
    'model_not_found',
    `The model '${id}' does not exist here.${didYouMean(meant)} GET /api/model-status lists those that do.`,
    {
      param: 'id',
    },
  )
}

/** Waits for something under way for so many seconds, and no longer than the caller is there. Throws what it throws. */
async function within(seconds: number, work: Promise<void>, call: Call): Promise<void> {
  const enough = new AbortController()
  // Who does not wait for its end is told by the model's status how it ended.
  work.catch(() => undefined)
  const signal = AbortSignal.any([enough.signal, call.signal])
  const time = delay(seconds * 1_000, undefined, { signal }).catch(() => undefined)
  await Promise.race([work, time]).finally(() => enough.abort())
  call.signal.throwIfAborted()
}

/** Secrets travel in the environment: its names are enough to see what is set. */
const shown = ({ env, ...settings }: Model): Record<string, unknown> => ({
  ...settings,
  env: Object.fromEntries(Object.keys(env).map(name => [name, '***'])),
})

/** What an operator does with one model. */
export const modelLoadRoutes = (owners: Pick<Owners, 'fleet' | 'jobs' | 'registry'>) => [
  route({
    method: 'GET',
    path: '/api/models/**:id',
    scope: 'admin:read',
    tag,
    summary: 'Look one model up with its settings and its engines',
    description: 'For tokens of the organization that owns the machine, as loading and unloading.',
    params: One,
    response: ModelDetail,
    handle: ({ params }, call) => {
      const model = find(params.id, call, owners)
      const now = owners.fleet.snapshot()
      return {
        id: model.id,
        object: 'model.detail' as const,
        settings: shown(model),
        status: statusOf(model, now, owners),
        engines: now.residents
          .filter(({ modelId }) => modelId === model.id)
          .map(resident => ({ ...engineOf(resident), command: [...resident.command] })),
      }
    },
  }),
  route({
    method: 'POST',
    path: '/api/models/**:id/load',
    scope: 'admin:write',
    bucket: 'api',
    tag,
    summary: 'Load a model',
    description:
      'Answers when it is loaded, cannot be loaded, or after `wait` seconds; then it goes on, and asking again waits on.',
    params: One,
    query: Wait,
    response: ModelStatus,
    handle: async ({ params, query }, call) => {
      const model = find(params.id, call, owners)
      if (!model.enabled)
        throw new Failure(
          'conflict',
          `The model '${model.id}' is switched off. Set 'enabled: true' in infer.yaml first.`,
        )
      await within(query.wait, owners.fleet.load(model), call)
      return statusOf(model, owners.fleet.snapshot(), owners)
    },
  }),
  route({
    method: 'POST',
    path: '/api/models/**:id/unload',
    scope: 'admin:write',
    bucket: 'api',
    tag,
    summary: 'Unload a model once its requests have ended',
    description:
      'Answers when its memory is free, or after `wait` seconds; then it goes on. The next request loads it again; one that is kept loaded stays unloaded until then.',
    params: One,
    query: Wait,
    response: ModelStatus,
    handle: async ({ params, query }, call) => {
      const model = find(params.id, call, owners)
      await within(query.wait, owners.fleet.unload(model.id), call)
      return statusOf(model, owners.fleet.snapshot(), owners)
    },
  }),
]
