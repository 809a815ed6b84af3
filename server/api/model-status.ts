import { z } from 'zod'
import { modelAllowed } from '../../core/accounts/accounts.ts'
import type { FleetSnapshot } from '../../core/models/fleet.ts'
import type { Model } from '../../core/models/model.ts'
import { slugsOf } from '../../core/models/slugs.ts'
import { Task } from '../../core/schemas/task.ts'
import { inputSchema } from '../../core/tasks/generation/input-schema.ts'
import { featuresByTask } from '../../core/tasks/task-features.ts'
import { ownsMachine } from '../machine-owner.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'

export const ModelStatus = z
  .object({
    model_id: z.string(),
    spec_id: z.string(),
    enabled: z.boolean(),
    tasks: z.array(Task),
    slug: z.string().nullable().describe('Where it is asked below /slug, of the first of its tasks that has a slug.'),
    slugs: z.record(z.string(), z.string()).describe('The same by task.'),
    status: z.enum(['warm', 'loading', 'cold', 'unavailable', 'disabled']),
    reason: z.string().nullable(),
    engine: z.string(),
    workers: z.object({ ready: z.int(), loading: z.int() }),
    queue_depth: z.int().describe('Requests and jobs that wait for it.'),
    eta_seconds: z.int().nullable().describe('Until one more would begin, as far as that is known.'),
    dispatch_wait_ms: z.int(),
    memory_bytes: z.int().nullable(),
    context_length: z.int().nullable(),
    capabilities: z.array(z.string()).describe('The features that requests of any of its tasks can use.'),
    features: z
      .record(z.string(), z.array(z.string()))
      .describe('The same by task: an embedding model has no `tools`.'),
    input_schema: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('What a request at `slug` may hold, as a JSON Schema; null for a model of text.'),
    input_schemas: z.record(z.string(), z.record(z.string(), z.unknown())).describe('The same by task.'),
  })
  .meta({ id: 'ModelStatus' })

const Configuration = z
  .object({
    read_at: z.int(),
    fault: z.string().nullable().describe('What is wrong in infer.yaml as it is now; null when it is in force.'),
    restart_for: z.array(z.string()).describe('Changed settings that take effect at the next start.'),
  })
  .meta({ id: 'ConfigurationStatus' })

const ModelStatusList = z
  .object({
    models: z.array(ModelStatus),
    configuration: Configuration.optional().describe(
      'For tokens of the organization that owns the machine, with the scope admin:read.',
    ),
  })
  .meta({ id: 'ModelStatusList' })

/** Returns what users of a model may see of it. */
export function statusOf(
  model: Model,
  { models, residents }: FleetSnapshot,
  { jobs, registry }: Pick<Owners, 'jobs' | 'registry'>,
): z.input<typeof ModelStatus> {
  const activity = models[model.id]
  const own = residents.filter(resident => resident.modelId === model.id)
  const outlook = jobs.outlook(model.id)
  const etaMs = outlook.waiting > 0 ? (outlook.etaMs ?? activity?.etaMs) : activity?.etaMs
  const bySlug = slugsOf(model)
  const slugs = Object.fromEntries(bySlug)
  const schemas = Object.fromEntries(
    [...bySlug.keys()].map(task => [task, inputSchema(task, model.resolutions) as Record<string, unknown>]),
  )
  const features = featuresByTask(model.tasks, registry.catalog().get(model.id)?.traits.features ?? new Set())
  return {
    model_id: model.id,
    spec_id: `${model.id}@1`,
    enabled: model.enabled,
    tasks: model.tasks,
    slug: Object.values(slugs)[0] ?? null,
    slugs,
    status: model.enabled ? (activity?.status ?? 'cold') : 'disabled',
    reason: activity?.reason ?? null,
    engine: model.engine,
    workers: {
      ready: own.filter(({ state }) => state === 'ready').length,
      loading: own.filter(({ state }) => state === 'starting').length,
    },
    queue_depth: outlook.waiting,
    eta_seconds: etaMs == null ? null : Math.ceil(etaMs / 1000),
    dispatch_wait_ms: model.dispatch_wait_ms,
    memory_bytes: own[0]?.bytes ?? model.memory ?? null,
    context_length: model.context_length ?? null,
    capabilities: [...new Set(Object.values(features).flat())],
    features,
    input_schema: Object.values(schemas)[0] ?? null,
    input_schemas: schemas,
  }
}

/** The route that lists the states of models. */
export const modelStatusRoutes = (owners: Pick<Owners, 'fleet' | 'jobs' | 'registry' | 'reload'>) => [
  route({
    method: 'GET',
    path: '/api/model-status',
    scope: 'user:read',
    tag: 'Models',
    summary: 'See which models are warm, loading or cold, and why one is unavailable',
    response: ModelStatusList,
    handle: (_, call) => {
      const now = owners.fleet.snapshot()
      const allowed = owners.registry.all().filter(model => modelAllowed(call.caller.token.models, model.id))
      const { readAt, fault, pending } = owners.reload.status()
      return {
        models: allowed.map(model => statusOf(model, now, owners)),
        ...(call.caller.scopes.includes('admin:read') && ownsMachine(call)
          ? { configuration: { read_at: Math.floor(readAt / 1000), fault, restart_for: [...pending] } }
          : {}),
      }
    },
  }),
]
