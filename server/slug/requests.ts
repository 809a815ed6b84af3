import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { jobIdOf, queueIdOf } from '../../core/ids.ts'
import { logLevels } from '../../core/schemas/log-level.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { hasEnded } from '../api/job-record.ts'
import type { Call } from '../call.ts'
import { errorBody } from '../errors.ts'
import type { Owners } from '../owners.ts'
import { JsonText, route } from '../route.ts'
import { slugErrorBody, slugErrors } from './errors.ts'
import { findRequest, logView, requestAnswer, statusView, type ViewOwners } from './view.ts'

const tag = 'Generation'
const One = z.object({ id: z.string() })

const ErrorFacts = z.object({ code: z.string(), message: z.string(), type: z.string() })
const GeneratedFile = z
  .object({
    url: z.string(),
    content_type: z.string(),
    file_name: z.string(),
    file_size: z.int(),
    width: z.int().optional(),
    height: z.int().optional(),
    duration: z.number().optional().describe('Seconds.'),
    fps: z.number().optional(),
    num_frames: z.int().optional(),
    figures: z
      .literal('requested')
      .optional()
      .describe('Size and length are those that were asked for, because no ffprobe was there to measure them.'),
    thumbnail_url: z.string().optional(),
  })
  .meta({ id: 'GeneratedFile' })

/** What a completed request has made. */
const output = {
  images: z.array(GeneratedFile).optional(),
  video: GeneratedFile.optional(),
  thumbnail_url: z.string().optional(),
  duration_seconds: z.number().optional(),
  width: z.int().optional(),
  height: z.int().optional(),
  num_frames: z.int().optional(),
  fps: z.number().optional(),
  seed_used: z.int().optional(),
  seed: z.int().optional(),
  prompt: z.string().optional(),
  timings: z.object({ inference: z.number(), queue: z.number() }).optional(),
  model_id: z.string().optional(),
  created_at: z.int().optional(),
  completed_at: z.int().optional(),
}
const progressFields = {
  queue_position: z.int().optional(),
  progress: z.number().optional(),
  eta_seconds: z.int().optional(),
  waiting_for: z
    .object({ reason: z.string(), detail: z.string(), eta_seconds: z.int().nullable() })
    .optional()
    .describe('Why it has not begun.'),
}

export const GenerationRequestView = z
  .looseObject({
    request_id: z.string(),
    status: z.enum(['processing', 'completed', 'failed']),
    ...progressFields,
    ...output,
    error: ErrorFacts.optional(),
  })
  .meta({ id: 'GenerationResult' })

const Log = z.object({ timestamp: z.string(), level: z.enum(logLevels), message: z.string(), source: z.string() })
const Logs = z.object({ logs: z.array(Log) }).meta({ id: 'GenerationLogs' })

const Status = z
  .looseObject({
    status: z.enum(['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'FAILED']),
    request_id: z.string(),
    ...progressFields,
    ...output,
    logs: z.array(Log).optional(),
    metrics: z.object({ inference_time: z.number(), queue_time: z.number() }).optional(),
    result: z.unknown().optional(),
    error: ErrorFacts.optional(),
    error_type: z.string().optional(),
    response_url: z.string(),
    status_url: z.string(),
    cancel_url: z.string(),
    stream_url: z.string(),
  })
  .meta({ id: 'GenerationStatus' })

const Cancelled = z
  .looseObject({ status: z.enum(['CANCELLATION_REQUESTED', 'ALREADY_COMPLETED', 'NOT_FOUND']), request_id: z.string() })
  .meta({ id: 'GenerationCancelled' })

/** `?logs=1` */
export const wantsLogs = (call: Call): boolean => ['1', 'true'].includes(call.query.get('logs') ?? '')

/** Finds the job of a request. Sets the headers with its id and, while it is unfinished, with the time to poll again. */
async function findPolled(requestId: string, call: Call, owners: Pick<Owners, 'jobs'>): Promise<JobRecord> {
  const job = await findRequest(requestId, call, owners)
  call.header('x-fal-request-id', queueIdOf(job.id)).header('x-job-id', job.id)
  if (!hasEnded(job))
    call.header('retry-after', '2').header('retry-after-ms', '2000').header('openai-poll-after-ms', '2000')
  return job
}

async function cancel(requestId: string, call: Call, owners: Pick<Owners, 'jobs'>): Promise<JsonText> {
  const answer = (status: number, body: object) =>
    new JsonText(JSON.stringify({ ...body, request_id: requestId.slice(0, 64) }), status)
  try {
    const job = await findRequest(requestId, call, owners)
    call.header('x-fal-request-id', queueIdOf(job.id)).header('x-job-id', job.id)
    // A second cancellation too, where the API of jobs repeats its first answer.
    if (hasEnded(job))
      throw new Failure(
        'job_already_finished',
        `The request ${queueIdOf(job.id)} has already ended: it is ${job.status}.`,
      )
    await owners.jobs.cancel(call.caller.organizationId, jobIdOf(requestId))
    return answer(202, { status: 'CANCELLATION_REQUESTED' })
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (failure.code === 'job_already_finished')
      return answer(400, { status: 'ALREADY_COMPLETED', ...errorBody(failure, call.id) })
    if (failure.code === 'not_found') return answer(404, { status: 'NOT_FOUND', ...slugErrorBody(failure, call.id) })
    throw thrown
  }
}

const cancelFacts = {
  path: '/slug/requests/:id/cancel',
  scope: 'user:write',
  bucket: 'jobs',
  tag,
  summary: 'Cancel a request; its engine is told at once',
  params: One,
  response: Cancelled,
  status: 202,
  errors: slugErrors,
} as const

export const requestRoutes = (owners: ViewOwners) => [
  route({
    method: 'GET',
    path: '/slug/requests/:id',
    scope: 'user:read',
    tag,
    summary: 'The result of a request, or that it goes on',
    description: 'A request that has failed is answered with 200 and its `error`: asking has not failed.',
    params: One,
    response: GenerationRequestView,
    errors: slugErrors,
    handle: async ({ params }, call) => requestAnswer(await findPolled(params.id, call, owners), call, owners),
  }),
  route({
    method: 'GET',
    path: '/slug/requests/:id/status',
    scope: 'user:read',
    tag,
    summary: 'How a request is doing',
    params: One,
    query: z.strictObject({ logs: z.string().optional().describe('`1`: with what its engine has said.') }),
    response: Status,
    errors: slugErrors,
    handle: async ({ params }, call) => {
      const job = await findPolled(params.id, call, owners)
      const logs = wantsLogs(call) ? await owners.jobs.logs(job) : undefined
      return new JsonText(JSON.stringify(await statusView(job, call, owners, logs)))
    },
  }),
  route({
    method: 'GET',
    path: '/slug/requests/:id/logs',
    scope: 'user:read',
    tag,
    summary: 'What the engine of a request has said',
    params: One,
    response: Logs,
    errors: slugErrors,
    handle: async ({ params }, call) => {
      const job = await findPolled(params.id, call, owners)
      return { logs: (await owners.jobs.logs(job)).map(logView) }
    },
  }),
  route({ ...cancelFacts, method: 'POST', handle: ({ params }, call) => cancel(params.id, call, owners) }),
  route({ ...cancelFacts, method: 'PUT', handle: ({ params }, call) => cancel(params.id, call, owners) }),
]
