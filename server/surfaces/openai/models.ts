import { z } from 'zod'
import { engineFacts } from '../../../core/models/engine-facts.ts'
import type { FleetSnapshot } from '../../../core/models/fleet.ts'
import type { ListedModel } from '../../../core/models/model-names.ts'
import { firstSlugOf } from '../../../core/models/slugs.ts'
import {
  array,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableString,
  optional,
  optionalString,
  string,
} from '../../../core/schemas/fields.ts'
import { Task } from '../../../core/schemas/task.ts'
import { featuresByTask } from '../../../core/tasks/registry.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import {
  capabilities,
  capabilitiesIn,
  etaSeconds,
  ModelPrice,
  modelRegion,
  modelState,
  priceObject,
  queueDepth,
  queueOf,
} from '../../views/model-status.ts'
import { seconds } from '../../views/view-of.ts'
import { modelNotFound, visibleModels } from '../../work/allowed-models.ts'

const route = routeOf({ tag: 'Models' })

const ModelObject = namedObject('ModelObject', 'A model.', {
  id: string('Name of the model: its id, an alias, a profile or an adapter. The value of `model` in a request.'),
  object: z.literal('model'),
  created: integer('Unix seconds at which the configuration was last read.'),
  model_id: string(
    'Id of the model behind this name: another one if the name is an alias, a profile or an adapter of it.',
  ),
  owned_by: string('`local`, or `remote` for a model of another server.'),
  description: optionalString('`description` in `infer.yaml`.'),
  tasks: array('Tasks that the model does.', Task),
  capabilities,
  status: modelState,
  reason: nullableString('Why it is unavailable or not loaded, as a sentence; else null.'),
  queue_depth: queueDepth,
  eta_seconds: etaSeconds,
  context_length: nullableInteger('Most tokens of a request and its answer together; null if unknown.'),
  slug: nullableString('Path under `/slug` of its first task that has one; null if none has.'),
  region: modelRegion,
  price: nullable(ModelPrice, 'Prices of the model; null if its use costs nothing.'),
})

const ModelList = namedObject('ModelList', 'Models that the token may use.', {
  object: z.literal('list'),
  data: array('The models.', ModelObject),
})

const describe = (
  model: ListedModel,
  now: FleetSnapshot,
  { config, jobs, registry }: Owners<'config' | 'jobs' | 'registry'>,
): z.input<typeof ModelObject> => ({
  id: model.id,
  object: 'model',
  created: seconds(registry.readAt),
  model_id: model.modelId,
  owned_by: engineFacts(model.engine).isElsewhere ? 'remote' : 'local',
  description: model.description,
  tasks: model.tasks,
  capabilities: capabilitiesIn(
    featuresByTask(model.tasks, registry.catalog().get(model.id)?.traits.features ?? new Set()),
  ),
  status: now.models[model.modelId]?.status ?? 'cold',
  reason: now.models[model.modelId]?.reason ?? null,
  ...queueOf(now.models[model.modelId], jobs.queueForecast(model.modelId)),
  context_length: model.context_length ?? null,
  slug: firstSlugOf(model),
  region: registry.catalog().get(model.id)?.region ?? null,
  price: priceObject(model, config.currency),
})

export const modelRoutes = ({ fleet, ...owners }: Owners<'config' | 'fleet' | 'jobs' | 'registry'>) => [
  route('GET /std/v1/models', 'user:read', {
    summary: 'List models',
    description: 'Returns the models that the token may use, under each of their names.',
    query: z.object({ task: optional(Task, 'Only models that do this task.') }),
    response: ModelList,
    handle: ({ query }, exchange) => {
      const now = fleet.snapshot()
      const wanted = visibleModels(exchange, owners).filter(model => !query.task || model.tasks.includes(query.task))
      return { object: 'list' as const, data: wanted.map(model => describe(model, now, owners)) }
    },
  }),
  route('GET /std/v1/models/**:id', 'user:read', {
    summary: 'Get model',
    description: 'Returns one model that the token may use.',
    errorCodes: ['model_not_found'],
    params: z.object({ id: string('Id of the model. It may contain `/`.') }),
    response: ModelObject,
    handle: ({ params }, exchange) => {
      const models = visibleModels(exchange, owners)
      const model = models.find(({ id }) => id === params.id)
      if (!model) throw modelNotFound(params.id, models, '/std/v1/models')
      return describe(model, fleet.snapshot(), owners)
    },
  }),
]
