import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { BenchmarkRun, ModelBenchmark } from '../../../core/models/benchmark.ts'
import type { Model } from '../../../core/models/model.ts'
import {
  anyObject,
  array,
  integer,
  modelId,
  namedObject,
  nullableInteger,
  nullableString,
  number,
  oneOf,
  optional,
  strictObject,
  string,
} from '../../../core/schemas/fields.ts'
import { ownsMachine, requireMachineOwner } from '../../http/access/reach.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { EngineStatus, engineOf } from '../../views/engine-status.ts'
import { ModelPlan, modelPlanView } from '../../views/model-plan.ts'
import { ModelStatus, modelStatusView } from '../../views/model-status.ts'
import { seconds, viewOf } from '../../views/view-of.ts'
import { allowedModel, allowedNames, listedModels } from '../../work/allowed-models.ts'
import { Wait, waitFor } from '../../work/wait-seconds.ts'

const route = routeOf({ tag: 'Models' })

const Configuration = namedObject('ConfigurationStatus', 'Whether the configuration file is in force.', {
  read_at: integer('Unix seconds at which it was last read.'),
  fault: nullableString(
    'What is wrong in `infer.yaml`, so that an earlier version stays in force; null if nothing is.',
  ),
  restart_for: array('Changed settings that take effect at the next start of the server.', z.string()),
})

const ModelStatusList = namedObject('ModelStatusList', 'The states of models.', {
  models: array('Models that the token may use.', ModelStatus),
  configuration: optional(
    Configuration,
    'State of the configuration file. Only for tokens with the scope `admin:read` of the organization that owns the machine.',
  ),
})

export const modelStatusRoutes = (owners: Owners<'config' | 'fleet' | 'jobs' | 'registry' | 'reload'>) => [
  route('GET /api/model-status', 'user:read', {
    summary: 'List model status',
    description:
      'Returns for each model whether it is loaded, how many requests wait for it, why it is unavailable, its slugs, and the JSON Schemas of its requests.',
    response: ModelStatusList,
    handle: (_, exchange) => {
      const now = owners.fleet.snapshot()
      const { readAt, fault, pending } = owners.reload.status()
      return {
        models: listedModels(exchange, owners).map(model => modelStatusView(model, now, owners)),
        ...(exchange.caller.scopes.includes('admin:read') && ownsMachine(exchange)
          ? { configuration: { read_at: seconds(readAt), fault, restart_for: [...pending] } }
          : {}),
      }
    },
  }),
]

const Asked = z.strictObject({ model: modelId })

export const modelPlanRoutes = (owners: Owners<'admission' | 'fleet' | 'registry'>) => [
  route('GET /api/plan', 'user:read', {
    summary: 'Get placement plan',
    description:
      'Returns what happens if a request for the model comes now: which engines are unloaded, where it is loaded, how long that takes, why, and from which figures; and what the configuration gives the model: other names, fallbacks, adapters, guessed tokens, saved conversations, a schedule. Starts nothing. The first question about a model reads the headers of its files.',
    errorCodes: ['model_not_found'],
    query: Asked,
    response: ModelPlan,
    handle: async ({ query }, exchange) => {
      const requested = allowedModel(query.model, exchange, owners, '/api/model-status')
      const names = allowedNames(exchange, owners)
      const ids = new Set(names.flatMap(({ model, kind, name }) => (kind === 'alias' ? [model.id] : [model.id, name])))
      const plan = await owners.fleet.plan(owners.registry.find(requested.listed.modelId)!)
      const usable = (id: string) => owners.admission.allowed(exchange.caller, id)
      return modelPlanView(plan, requested, { names, allowed: id => ids.has(id), usable })
    },
  }),
]

const One = z.object({ id: string('Id of the model. It may contain `/`.') })
const ModelEngine = EngineStatus.extend({
  command: array('Program and arguments; empty for a remote engine.', z.string()),
}).meta({ id: 'ModelEngine', description: 'An engine of a model.' })

const EngineLoad = namedObject('EngineLoad', 'One engine of a model from its start to its end.', {
  engine_id: string('Id of the engine: `wkr_…`.'),
  state: oneOf('`failed`: it could not be loaded. `ended`: it was ready, and runs no longer.', [
    'loading',
    'ready',
    'failed',
    'ended',
  ]),
  devices: array('Ids of its devices.', z.string()),
  reserved_bytes: number('Memory that was reserved for it.'),
  started_at: integer('Unix seconds.'),
  load_ms: nullableInteger('Milliseconds until it was ready; null before.'),
  ended_at: nullableInteger('Unix seconds; null while it runs.'),
  reason: nullableString('Why it ended or could not be loaded; null while it runs.'),
})

const ModelDetail = namedObject('ModelDetail', 'A model with its settings and engines.', {
  id: string('Id of the model.'),
  object: z.literal('model.detail'),
  settings: anyObject(
    'Settings as in `infer.yaml`, with defaults. Values of environment variables are replaced by `***`.',
  ),
  status: ModelStatus,
  engines: array('Engines that run or load.', ModelEngine),
  loads: array('Its newest loads since the start of the server, newest first, 20 at most.', EngineLoad),
})

const Figures = strictObject('BenchmarkFigures', 'Figures that `infer model bench` has measured.', {
  runs: array('Figures by the number of requests at a time.', BenchmarkRun).min(1).max(8),
})

/** Finds a model for the machine's owner only: settings contain paths, and unloading affects all organizations. */
export function findModel(name: string, exchange: ClientExchange, { registry }: Owners<'registry'>) {
  requireMachineOwner(exchange, 'Settings and engines of models are')
  const { listed } = allowedModel(name, exchange, { registry }, '/api/model-status', 'id')
  const model = registry.find(listed.modelId)!
  return { model, listed: registry.named(model.id)!.listed }
}

/** Returns the settings with masked values of environment variables, which may be secrets. */
const shown = ({ env, ...settings }: Model): Record<string, unknown> => ({
  ...settings,
  env: Object.fromEntries(Object.keys(env).map(name => [name, '***'])),
})

/** The routes of an operator for one model. */
export const modelLoadRoutes = (owners: Owners<'config' | 'fleet' | 'jobs' | 'registry'>) => [
  route('GET /api/models/**:id', 'admin:read', {
    summary: 'Get model settings',
    description:
      'Returns a model with its settings, state, engines and newest loads. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch', 'model_not_found'],
    params: One,
    response: ModelDetail,
    handle: ({ params }, exchange) => {
      const { model, listed } = findModel(params.id, exchange, owners)
      const now = owners.fleet.snapshot()
      return {
        id: model.id,
        object: 'model.detail' as const,
        settings: shown(model),
        status: modelStatusView(listed, now, owners),
        engines: now.residents
          .filter(({ modelId }) => modelId === model.id)
          .map(resident => ({ ...engineOf(resident), command: [...resident.command] })),
        loads: owners.fleet
          .loads(model.id)
          .map(load => viewOf(EngineLoad, load, { devices: [...load.devices], reserved_bytes: load.bytes })),
      }
    },
  }),
  route('POST /api/models/**:id/load', 'admin:write', {
    bucket: 'api',
    summary: 'Load model',
    description:
      'Loads a model into memory. The answer comes when it is loaded, or after `wait` seconds; loading continues then, and a repeated request waits again. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch', 'model_not_found', 'conflict', 'no_capacity', 'worker_error'],
    params: One,
    query: Wait,
    response: ModelStatus,
    handle: async ({ params, query }, exchange) => {
      const { model, listed } = findModel(params.id, exchange, owners)
      if (!model.enabled)
        throw new Failure('conflict', `The model '${model.id}' is disabled. Set 'enabled: true' in infer.yaml first.`)
      await waitFor(query.wait, owners.fleet.load(model), exchange)
      return modelStatusView(listed, owners.fleet.snapshot(), owners)
    },
  }),
  route('POST /api/models/**:id/unload', 'admin:write', {
    bucket: 'api',
    summary: 'Unload model',
    description:
      'Unloads a model once its requests have ended. The answer comes when its memory is free, or after `wait` seconds; unloading continues then. The next request loads it again; a model that is kept loaded by its settings stays unloaded until then. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch', 'model_not_found'],
    params: One,
    query: Wait,
    response: ModelStatus,
    handle: async ({ params, query }, exchange) => {
      const { model, listed } = findModel(params.id, exchange, owners)
      await waitFor(query.wait, owners.fleet.unload(model.id), exchange)
      return modelStatusView(listed, owners.fleet.snapshot(), owners)
    },
  }),
  route('POST /api/models/**:id/benchmark', 'admin:write', {
    bucket: 'api',
    summary: 'Replace benchmark',
    description:
      'Stores figures that `infer model bench` has measured, with where the engine runs, its memory and the time of its load. They are shown until the settings of the model or the version of infer change. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch', 'model_not_found', 'conflict'],
    params: One,
    body: Figures,
    example: {
      runs: [
        {
          requests: 1,
          input_tokens: 512,
          output_tokens: 128,
          input_tokens_per_second: 3140.2,
          output_tokens_per_second: 71.4,
          time_to_first_token_ms: 163,
        },
      ],
    },
    response: ModelBenchmark,
    handle: ({ params, body }, exchange) =>
      owners.fleet.keepBenchmark(findModel(params.id, exchange, owners).model, body.runs),
  }),
]
