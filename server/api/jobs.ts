import { z } from 'zod'
import { modelAllowed } from '../../core/accounts/accounts.ts'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import { unbuilt } from '../../core/schemas/unbuilt.ts'
import { type JobRecord, jobStatuses } from '../../core/store/store.ts'
import { prepareInputs } from '../../core/tasks/prepare.ts'
import { Task } from '../../core/tasks/tasks.ts'
import type { Call } from '../call.ts'
import { interrupt } from '../dispatch.ts'
import { JsonText, route } from '../route.ts'
import { callRecord, runningCall } from '../std/calls.ts'
import { submitJob } from '../submit.ts'

const tag = 'Jobs'
const seconds = (ms: number | null) => (ms === null ? null : Math.floor(ms / 1000))

const priorities = { low: -10, normal: 0, high: 10 } as const
const Inputs = z.record(z.string(), z.unknown())

const Create = z
  .object({
    task: Task,
    model_id: z.string().max(128).optional(),
    model: z.string().max(128).optional(),
    inputs: Inputs.optional(),
    input: Inputs.optional(),
    payload: Inputs.optional(),
    priority: z.union([z.int().min(-100).max(100), z.enum(['low', 'normal', 'high'])]).default(0),
    max_attempts: z.int().min(1).max(10).default(3),
    not_before: z.int().min(0).optional(),
    metadata: z.record(z.string(), z.string().max(512)).optional(),
    slug: unbuilt,
    webhook_url: unbuilt,
    webhook_events: unbuilt,
    timeout_seconds: unbuilt,
    start_timeout_seconds: unbuilt,
    expires_after_seconds: unbuilt,
  })
  .meta({ id: 'JobCreate' })

const Created = z
  .object({ id: z.string(), queue_id: z.string(), status: z.enum(jobStatuses) })
  .meta({ id: 'JobCreated' })

export const JobObject = z
  .object({
    id: z.string(),
    object: z.literal('job'),
    queue_id: z.string().nullable(),
    organization_id: z.string(),
    kind: z.enum(['async', 'sync']),
    task: Task,
    model_id: z.string(),
    status: z.enum(jobStatuses),
    priority: z.int(),
    inputs: z.unknown(),
    result: z.unknown(),
    error: z
      .object({ code: z.string(), message: z.string(), type: z.string(), retryable: z.boolean(), attempt: z.int() })
      .nullable(),
    attempts: z.int(),
    max_attempts: z.int(),
    worker_id: z.string().nullable(),
    created_at: z.int(),
    updated_at: z.int(),
    started_at: z.int().nullable(),
    finished_at: z.int().nullable(),
    metrics: z.object({ queue_ms: z.int().nullable(), run_ms: z.int().nullable() }),
    usage: z.object({ input_tokens: z.int(), output_tokens: z.int() }).nullable(),
    cost: z.number().nullable(),
    token_id: z.string(),
    metadata: z.unknown(),
  })
  .meta({ id: 'Job' })

const facts = (job: JobRecord): Omit<z.input<typeof JobObject>, 'inputs' | 'result' | 'metadata'> => ({
  id: job.id,
  object: 'job',
  queue_id: job.kind === 'async' ? job.queueId : null,
  organization_id: job.organizationId,
  kind: job.kind,
  task: job.task,
  model_id: job.modelId,
  status: job.status,
  priority: job.priority,
  error: job.error,
  attempts: job.attempt,
  max_attempts: job.maxAttempts,
  worker_id: job.engineId,
  created_at: seconds(job.createdAt)!,
  updated_at: seconds(job.updatedAt)!,
  started_at: seconds(job.startedAt),
  finished_at: seconds(job.finishedAt),
  metrics: {
    queue_ms: job.startedAt === null ? null : job.startedAt - job.createdAt,
    run_ms: job.startedAt === null || job.finishedAt === null ? null : job.finishedAt - job.startedAt,
  },
  usage: job.usage && { input_tokens: job.usage.inputTokens, output_tokens: job.usage.outputTokens },
  cost: job.cost === null ? null : job.cost / 1e6,
  token_id: job.tokenId,
})

/** The record as JSON. What the caller sent and what came out are stored as JSON text, may be large, and stay text. */
function shown(job: JobRecord): JsonText {
  const inputs = job.kind === 'async' ? job.inputs : 'null'
  const head = JSON.stringify(facts(job)).slice(0, -1)
  return new JsonText(
    `${head},"inputs":${inputs},"result":${job.result ?? 'null'},"metadata":${job.metadata ?? 'null'}}`,
  )
}

const missing = (id: string) => new Failure('not_found', `Job ${id.slice(0, 64)} was not found.`)
const One = z.object({ id: z.string() })

/**
 * The model that will take the job. What is wrong with the inputs is said at the submit and not when their turn comes,
 * and of the fields under which they were sent.
 */
function modelOf(task: Task, request: unknown, call: Call, fields: { model: string; inputs: string }): string {
  try {
    return prepareInputs(task, request, call.owners.registry.catalog()).modelId
  } catch (thrown) {
    const { code, message, param, details, facts, cause } = Failure.from(thrown)
    if (param === undefined) throw thrown
    const named = (field: string) => (field === 'model' ? fields.model : `${fields.inputs}.${field}`)
    const said = (text: string, field: string) => text.replaceAll(`'${field}'`, `'${named(field)}'`)
    throw new Failure(code, said(message, param), {
      param: named(param),
      details: details?.map(one => ({ ...one, path: named(one.path), message: said(one.message, one.path) })),
      facts,
      cause,
    })
  }
}

async function find(id: string, call: Call): Promise<JobRecord> {
  const stored = isId(id) ? await call.owners.store.jobs.find(call.caller.organizationId, id) : undefined
  const job = stored ?? callRecord(id, call)
  if (!job) throw missing(id)
  return job
}

/** Cancels a call that somebody waits for, and resolves with its record. Undefined: there is none under this id. */
async function cancelCall(id: string, call: Call): Promise<JobRecord | undefined> {
  const running = runningCall(id, call)
  if (running) {
    interrupt(running, new Failure('cancelled', `The job ${id} was cancelled.`))
    await running.over
  }
  const ended = callRecord(id, call)
  if (!ended || ended.status === 'cancelled') return ended
  throw new Failure('job_already_finished', `The job ${id} has already ended: it is ${ended.status}.`)
}

/** Durable jobs: an id that was answered survives the server. */
export const jobRoutes = [
  route({
    method: 'POST',
    path: '/api/jobs',
    scope: 'user:write',
    tag,
    summary: 'Submit a job that runs when there is room',
    description:
      'Once the answer with the id is there, the job survives crashes and restarts. An `Idempotency-Key` header makes a repeated submission return the same job for 24 hours.',
    body: Create,
    example: {
      task: 'std/embeddings',
      model_id: 'infer/tiny-embed',
      inputs: { input: 'A cat sat on the mat.' },
      metadata: { ref: '42' },
    },
    response: Created,
    status: 202,
    handle: ({ body }, call) => {
      const fields = {
        model: body.model_id === undefined && body.model !== undefined ? 'model' : 'model_id',
        inputs: (['inputs', 'input', 'payload'] as const).find(name => body[name] !== undefined) ?? 'inputs',
      } as const
      const modelId = body[fields.model]
      const inputs = body[fields.inputs]
      if (modelId === undefined)
        throw new Failure('missing_required_parameter', "Missing required parameter: 'model_id'.", {
          param: 'model_id',
        })
      if (inputs === undefined)
        throw new Failure('missing_required_parameter', "Missing required parameter: 'inputs'.", { param: 'inputs' })
      const { stream: _, ...request } = { ...inputs, model: modelId } as Record<string, unknown>
      const model = modelOf(body.task, request, call, fields)
      if (!modelAllowed(call.caller.token.models, model))
        throw new Failure(
          'model_not_allowed',
          `The token '${call.caller.token.name}' may not use the model '${model}'.`,
          { param: fields.model },
        )
      return submitJob(call, body, {
        task: body.task,
        modelId: model,
        inputs: request,
        priority: typeof body.priority === 'string' ? priorities[body.priority] : body.priority,
        maxAttempts: body.max_attempts,
        notBefore: (body.not_before ?? 0) * 1000,
        metadata: body.metadata,
      })
    },
  }),
  route({
    method: 'GET',
    path: '/api/jobs/:id',
    scope: 'user:read',
    tag,
    summary: 'Look a job up, or wait for its end',
    description: 'With `?wait=30` the answer comes when the job has ended, or after that many seconds.',
    params: One,
    query: z.object({ wait: z.coerce.number().min(0).max(120).default(0) }),
    response: JobObject,
    handle: async ({ params, query }, call) => {
      let job = await find(params.id, call)
      if (query.wait > 0 && (job.status === 'pending' || job.status === 'processing')) {
        const enough = AbortSignal.any([call.gone, AbortSignal.timeout(Math.ceil(query.wait * 1000))])
        // A call that somebody waits for is not in the store's queue, so its end is heard from itself.
        const running = runningCall(job.id, call)
        await Promise.race([call.owners.jobs.wait(job.id, enough), ...(running ? [running.over] : [])])
        job = await find(params.id, call)
      }
      if (job.status === 'pending' || job.status === 'processing')
        call.header('retry-after', '2').header('retry-after-ms', '2000').header('openai-poll-after-ms', '2000')
      return shown(job)
    },
  }),
  route({
    method: 'POST',
    path: '/api/jobs/:id/cancel',
    scope: 'user:write',
    tag,
    summary: 'Cancel a job; its engine is told at once',
    params: One,
    response: JobObject,
    handle: async ({ params }, call) => {
      const { id } = params
      // The calls first: one that leaves the memory meanwhile is in the store.
      const job = isId(id)
        ? ((await cancelCall(id, call)) ?? (await call.owners.jobs.cancel(call.caller.organizationId, id)))
        : undefined
      if (!job) throw missing(id)
      return shown(job)
    },
  }),
]
