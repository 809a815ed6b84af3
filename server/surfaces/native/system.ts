import { z } from 'zod'
import { modelAllowed } from '../../../core/accounts/model-allowed.ts'
import { readLargeText } from '../../../core/assets.ts'
import {
  array,
  boolean,
  exactQueryTime,
  integer,
  namedObject,
  nullableString,
  number,
  oneOf,
  string,
} from '../../../core/schemas/fields.ts'
import { requireMachineOwner } from '../../http/access/reach.ts'
import { isCrossSite, sendText } from '../../http/answer/own-page.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { type HistorySample, historyIntervalMs, type ModelActivityCounts } from '../../metrics/history.ts'
import { seconds } from '../../views/view-of.ts'

const route = routeOf({ tag: 'System' })

const rates = {
  requests_per_second: number('Requests and jobs that ended, per second.'),
  failures_per_second: number('Those of them that failed, per second.'),
  input_tokens_per_second: number('Prompt tokens per second.'),
  output_tokens_per_second: number('Generated tokens per second.'),
}

const SystemHistory = namedObject('SystemHistory', 'What the models did in the last hour.', {
  object: z.literal('system.history'),
  interval_seconds: integer('Length of an interval.'),
  samples: array(
    'Intervals of the last hour, oldest first. They are kept in memory: a restart begins anew.',
    z.object({
      time: number('Unix seconds of the end of the interval, with milliseconds.'),
      ...rates,
      models: array(
        'The same by model, of those that did something.',
        z.object({ model_id: string('Id of the model.'), ...rates }),
      ),
    }),
  ),
})

const round = (value: number) => Math.round(value * 100) / 100

function ratesOf(models: readonly ModelActivityCounts[], elapsedMs: number) {
  const perSecond = (of: (counts: ModelActivityCounts) => number) =>
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

const onlyOwner = 'Only for tokens of the organization that owns the machine.'

const DoctorReport = namedObject('DoctorReport', 'The results of `infer doctor`.', {
  object: z.literal('system.doctor'),
  checked_at: integer('Unix seconds at which the checks ended.'),
  healthy: boolean('Whether nothing is broken.'),
  findings: array(
    'The result of each check.',
    z.object({
      name: string('What was checked.'),
      state: oneOf('`warning`: works, but should be known. `broken`: keeps the server from working.', [
        'fine',
        'warning',
        'broken',
      ]),
      detail: string('What was found, as a sentence.'),
      advice: nullableString('What to do; null if there is nothing to do.'),
    }),
  ),
})

const SystemConfig = namedObject('SystemConfig', 'The configuration that is in force, with its sources.', {
  object: z.literal('system.config'),
  path: string('Path of `infer.yaml`.'),
  exists: boolean('Whether the file exists. Without it everything has its default.'),
  values: array(
    'All keys but those of models and plans. For models see `GET /api/models/{id}`.',
    z.object({
      key: string('Path of the key in the file, such as `limits.json_body`.'),
      section: string('Title of its section in the configuration reference.'),
      meaning: string('What the key does.'),
      value: nullableString('The value that is in force, as written in YAML; null if none is.'),
      absent: nullableString('What no value means; null if the key has a default.'),
      default: nullableString('The default, as written in YAML; null if the key has none.'),
      source: oneOf('Whether the file sets the key, an option of `infer serve`, or neither.', [
        'file',
        'command_line',
        'default',
      ]),
      restart_needed: boolean('Whether the file has another value, for the next start of the server.'),
    }),
  ),
  environment: array(
    'Environment variables that infer reads.',
    z.object({
      name: string('Name of the variable.'),
      meaning: string('What it does.'),
      is_set: boolean('Whether the server was started with it.'),
      value: nullableString('Null if it is not set, or may be or contain a secret.'),
      default: string('What no value means.'),
    }),
  ),
})

const BackupList = namedObject('BackupList', 'Backups of the database.', {
  object: z.literal('list'),
  folder: string('Folder of the backups.'),
  data: array(
    'The backups, newest first.',
    z.object({
      path: string('Path of the file.'),
      bytes: integer('Size of the file.'),
      modified_at: integer('Unix seconds.'),
    }),
  ),
})

/** The routes about the installation, for the charts of the console, for health and for metrics. */
export const systemRoutes = ({ history, inspection, metrics }: Owners<'history' | 'inspection' | 'metrics'>) => [
  route('GET /api/system/history', 'admin:read', {
    summary: 'Get system history',
    description:
      'Returns requests and tokens per second of the last hour, in intervals of 10 s. With `after` only the intervals that ended later: send the `time` of the last one. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch'],
    query: z.strictObject({
      after: exactQueryTime.describe('Unix seconds. Only intervals that ended after it.'),
    }),
    response: SystemHistory,
    handle: ({ query }, exchange) => {
      requireMachineOwner(exchange, 'The history of this server is')
      const allowed = (modelId: string) => modelAllowed(exchange.caller.token.models, modelId)
      return {
        object: 'system.history' as const,
        interval_seconds: historyIntervalMs / 1_000,
        samples: history.since(Math.round(query.after * 1_000)).map(one => sampleOf(one, allowed)),
      }
    },
  }),
  route('GET /api/system/doctor', 'admin:read', {
    summary: 'Check the installation',
    description: `Runs the checks of \`infer doctor\` as a process beside the server and returns their results. It takes some seconds, and minutes when GPU backends are tested for the first time. Requests at the same time share a run. ${onlyOwner}`,
    errorCodes: errorGroups.command,
    response: DoctorReport,
    handle: async (_, exchange) => {
      requireMachineOwner(exchange, 'The checks of this machine are')
      const { at, findings } = await inspection.doctor()
      return {
        object: 'system.doctor' as const,
        checked_at: seconds(at),
        healthy: findings.every(({ state }) => state !== 'broken'),
        findings: [...findings],
      }
    },
  }),
  route('GET /api/system/config', 'admin:read', {
    summary: 'Get configuration',
    description: `Returns the settings that are in force, where each comes from, and the environment variables that infer reads. Values that may contain secrets are left out. ${onlyOwner}`,
    errorCodes: ['organization_mismatch'],
    response: SystemConfig,
    handle: (_, exchange) => {
      requireMachineOwner(exchange, 'The configuration of this server is')
      const { path, exists, values, variables } = inspection.configuration()
      return {
        object: 'system.config' as const,
        path,
        exists,
        values: values.map(({ isPending, ...rest }) => ({ ...rest, restart_needed: isPending })),
        environment: variables.map(({ isSet, ...rest }) => ({ ...rest, is_set: isSet })),
      }
    },
  }),
  route('GET /api/system/backups', 'admin:read', {
    summary: 'List backups',
    description: `Lists the backups of the database in the data directory: the server makes one before it upgrades the database. Those that \`infer backup\` wrote elsewhere are not known. ${onlyOwner}`,
    errorCodes: ['organization_mismatch'],
    response: BackupList,
    handle: (_, exchange) => {
      requireMachineOwner(exchange, 'The backups of this server are')
      const { folder, files } = inspection.backups()
      return {
        object: 'list' as const,
        folder,
        data: files.map(({ path, bytes, modifiedAt }) => ({ path, bytes, modified_at: seconds(modifiedAt) })),
      }
    },
  }),
  route('GET /api/system/licenses', 'user:read', {
    summary: 'Get licences',
    description:
      'Returns the third-party software in this program, a line each, then their licences with their texts: what `infer licenses` prints.',
    media: ['text/plain'],
    answer: async exchange =>
      exchange.send(200, await readLargeText('licenses.txt'), 'text/plain; charset=utf-8', [
        'cache-control',
        'private, max-age=3600',
      ]),
  }),
  route('GET /livez', 'public', {
    aliases: ['/healthz'],
    summary: 'Check liveness',
    description: 'Answers 200 as long as the process runs, also while it starts or stops. For liveness probes.',
    media: ['text/plain'],
    answer: exchange => sendText(exchange, 200, isCrossSite(exchange) ? '' : 'ok\n'),
  }),
  route('GET /readyz', 'public', {
    summary: 'Check readiness',
    description: 'Answers 200 if requests are accepted, and 503 while the server starts or stops. For load balancers.',
    media: ['text/plain'],
    answer: exchange => sendText(exchange, 200, isCrossSite(exchange) ? '' : 'ready\n'),
  }),
  route('GET /metrics', 'loopback', {
    summary: 'Get metrics',
    description:
      'Metrics in the text format of Prometheus. Direct connections from this machine need no token, unless `metrics: token` is set in `infer.yaml`. All others, a proxy on this machine included (`Forwarded`, `X-Forwarded-*`, `X-Real-IP` or `Via`), need the scope `admin:read`.',
    media: ['text/plain'],
    answer: async exchange => exchange.send(200, await metrics.text(), metrics.contentType),
  }),
]
