import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import { jobIdOf, queueIdOf } from '../../../core/ids.ts'
import {
  array,
  integer,
  looseObject,
  namedObject,
  number,
  object,
  oneOf,
  optional,
  optionalInteger,
  optionalNumber,
  optionalOneOf,
  optionalString,
  strictObject,
  string,
} from '../../../core/schemas/fields.ts'
import { logLevels } from '../../../core/schemas/log-level.ts'
import { errorBody } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { findRequest, generationErrorBody, logView, requestUrls } from '../../views/generation-request.ts'
import { ErrorFacts, hasEnded, WaitingFor } from '../../views/job-record.ts'
import { streamStatus, wantsLogs } from '../../work/stream-status.ts'
import {
  bodyStatusOf,
  queueStatusOf,
  requestAnswer,
  requestView,
  slugRoute,
  statusView,
  type ViewOwners,
} from './view.ts'

const most = 50

const Ids = z.array(z.string().max(128)).max(1_000)
const BatchQuery = strictObject('GenerationBatchQuery', 'Requests to read.', {
  request_ids: optional(Ids, `1 to ${most} request ids: \`q_…\`.`),
  ids: optional(Ids, 'The same as `request_ids`.'),
})

const BatchView = namedObject('GenerationBatch', 'The states and results of several requests.', {
  requests: array(
    'The requests in the order of the ids, each once. With `?fields=status` without their results.',
    z.looseObject({
      request_id: string('Id of the request.'),
      status: oneOf('State of the request.', ['processing', 'completed', 'failed', 'not_found']),
      queue_status: optionalOneOf('The same as in `GET /slug/requests/{id}/status`; absent if it was not found.', [
        'IN_QUEUE',
        'IN_PROGRESS',
        'COMPLETED',
        'FAILED',
      ]),
    }),
  ),
  counts: object('Numbers of requests by status.', {
    processing: integer('Requests that have not ended.'),
    completed: integer('Requests that completed.'),
    failed: integer('Requests that failed.'),
    not_found: integer('Requests that do not exist.'),
  }),
})

interface Entry extends Record<string, unknown> {
  request_id: string
  status: 'processing' | 'completed' | 'failed' | 'not_found'
}

/** Returns one request of the batch. One of another organization is `not_found`; an output that expired is an error. */
async function entryOf(request_id: string, exchange: ClientExchange, bare: boolean, owners: ViewOwners) {
  const errorOf = ({ code, message, type }: Failure) => ({ error: { code, message, type } })
  try {
    const job = await findRequest(request_id, exchange, owners)
    const head = { request_id, status: bodyStatusOf(job), queue_status: queueStatusOf(job) }
    if (bare) return head
    try {
      return { ...head, ...(await requestView(job, exchange, owners)), ...head }
    } catch (thrown) {
      const failure = Failure.from(thrown)
      if (failure.code !== 'output_expired') throw thrown
      return { ...head, ...errorOf(failure) }
    }
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (failure.status !== 404 && failure.status !== 410) throw thrown
    return { request_id: request_id.slice(0, 64), status: 'not_found', ...errorOf(failure) }
  }
}

export const batchRoutes = (owners: ViewOwners) => [
  slugRoute('POST /slug/requests/batch', 'user:read', {
    bucket: 'jobs',
    summary: 'Get requests',
    description:
      'Returns up to 50 requests at once, in the order of the ids. Requests that do not exist have the status `not_found`.',
    query: z.strictObject({ fields: optionalOneOf('`status`: without results.', ['status']) }),
    body: BatchQuery,
    example: { request_ids: ['q_01K0000000000000000000000A'] },
    response: BatchView,
    handle: async ({ body, query }, exchange) => {
      const field = body.request_ids === undefined && body.ids !== undefined ? 'ids' : 'request_ids'
      const given = body[field]
      if (given === undefined)
        throw invalid(field, `Missing required parameter: '${field}'.`, 'missing_required_parameter')
      const ids = [...new Set(given)]
      if (ids.length === 0 || ids.length > most)
        throw invalid(field, `'${field}' must hold 1 id or more, and at most ${most}.`)
      const requests = await Promise.all(ids.map(id => entryOf(id, exchange, query.fields === 'status', owners)))
      const count = (wanted: Entry['status']) => requests.filter(({ status }) => status === wanted).length
      const counts = {
        processing: count('processing'),
        completed: count('completed'),
        failed: count('failed'),
        not_found: count('not_found'),
      }
      return new JsonText(JSON.stringify({ requests, counts }))
    },
  }),
]

const One = z.object({ id: string('Id of the request: `q_…`.') })
const ofRequest = { params: One, errorCodes: ['not_found', 'output_expired'] } as const

const GeneratedFile = namedObject('GeneratedFile', 'A file that was created.', {
  url: string(
    'Where to read the file. Signed: it needs no token, and works for a day unless the server is set otherwise.',
  ),
  content_type: string('Media type, such as `image/png`.'),
  file_name: string('Name of the file.'),
  file_size: integer('Bytes.'),
  width: optionalInteger('Pixels.'),
  height: optionalInteger('Pixels.'),
  duration: optionalNumber('Seconds.'),
  fps: optionalNumber('Frames per second.'),
  num_frames: optionalInteger('Number of frames.'),
  figures: optional(
    z.literal('requested'),
    'Present if the server has no ffprobe: size and length are as requested, not measured.',
  ),
  thumbnail_url: optionalString('Where to read a small image of it (WebP).'),
})

/** Output of a completed request. */
const output = {
  images: optional(z.array(GeneratedFile), 'The images.'),
  video: optional(GeneratedFile, 'The video.'),
  thumbnail_url: optionalString('Where to read a small image of the video (WebP).'),
  duration_seconds: optionalNumber('Length of the video in seconds.'),
  width: optionalInteger('Pixels.'),
  height: optionalInteger('Pixels.'),
  num_frames: optionalInteger('Number of frames of the video.'),
  fps: optionalNumber('Frames per second of the video.'),
  seed_used: optionalInteger('Seed of the first output. The same seed and request give the same output.'),
  seed: optionalInteger('The same as `seed_used`.'),
  prompt: optionalString('The prompt that the engine used.'),
  timings: optional(
    z.object({
      inference: number('Seconds that the engine worked.'),
      queue: number('Seconds that the request waited.'),
    }),
    'How long it took.',
  ),
  model_id: optionalString('Id of the model.'),
  created_at: optionalInteger('Unix seconds.'),
  completed_at: optionalInteger('Unix seconds.'),
}
const progressFields = {
  queue_position: optionalInteger('How many requests are before it. Present while it waits.'),
  progress: optionalNumber('Progress from 0 to 1. Present if known.'),
  eta_seconds: optionalInteger('Expected seconds until the end. Present if known.'),
  waiting_for: optional(WaitingFor, 'Why it has not begun. Present while it waits.'),
}

export const GenerationRequestView = looseObject('GenerationResult', 'The result of a request, or its progress.', {
  request_id: string('Id of the request: `q_…`.'),
  status: oneOf('State of the request.', ['processing', 'completed', 'failed']),
  ...progressFields,
  ...output,
  error: optional(ErrorFacts, 'Why it failed.'),
})

const Log = z.object({
  timestamp: string('ISO 8601, UTC.'),
  level: oneOf('Level of the line.', logLevels),
  message: string('Text of the line.'),
  source: string('Always `USER`.'),
})
const Logs = namedObject('GenerationLogs', 'The log of a request.', { logs: array('The lines, oldest first.', Log) })

const GenerationStatus = looseObject('GenerationStatus', 'The status of a request.', {
  status: oneOf('State of the request.', ['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'FAILED']),
  request_id: string('Id of the request: `q_…`.'),
  ...progressFields,
  ...output,
  logs: optional(z.array(Log), 'The log, with `?logs=1`.'),
  metrics: optional(
    z.object({
      inference_time: number('Seconds that the engine worked.'),
      queue_time: number('Seconds that the request waited.'),
    }),
    'How long it took. Present once it has completed.',
  ),
  result: optional(z.unknown(), 'The result as in `GET /slug/requests/{id}`. Present once it has completed.'),
  error: optional(ErrorFacts, 'Why it failed.'),
  error_type: optionalString("Class of the error in fal's terms."),
  ...requestUrls,
})

const Cancelled = looseObject('GenerationCancelled', 'Whether a request is cancelled.', {
  status: oneOf('`CANCELLATION_REQUESTED` with 202, `ALREADY_COMPLETED` with 400, `NOT_FOUND` with 404.', [
    'CANCELLATION_REQUESTED',
    'ALREADY_COMPLETED',
    'NOT_FOUND',
  ]),
  request_id: string('Id of the request.'),
})

/**
 * Finds the job of a request. Sets the headers with its id and, while it is unfinished, with the time to poll again.
 */
async function findPolled(requestId: string, exchange: ClientExchange, owners: Owners<'jobs'>) {
  const job = await findRequest(requestId, exchange, owners)
  exchange.header('x-fal-request-id', queueIdOf(job.id)).header('x-job-id', job.id)
  if (!hasEnded(job)) exchange.pollAgain()
  return job
}

async function cancel(requestId: string, exchange: ClientExchange, owners: Owners<'jobs'>) {
  const answer = (status: number, body: object) =>
    new JsonText(JSON.stringify({ ...body, request_id: requestId.slice(0, 64) }), status)
  try {
    const job = await findRequest(requestId, exchange, owners)
    exchange.header('x-fal-request-id', queueIdOf(job.id)).header('x-job-id', job.id)
    // Also for a second cancellation, for which `/api/jobs` repeats its first answer.
    if (hasEnded(job))
      throw new Failure(
        'job_already_finished',
        `The request ${queueIdOf(job.id)} has already ended: it is ${job.status}.`,
      )
    await owners.jobs.cancel(exchange.caller.organizationId, jobIdOf(requestId))
    return answer(202, { status: 'CANCELLATION_REQUESTED' })
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (failure.code === 'job_already_finished')
      return answer(400, { status: 'ALREADY_COMPLETED', ...errorBody(failure, exchange.id) })
    if (failure.code === 'not_found')
      return answer(404, { status: 'NOT_FOUND', ...generationErrorBody(failure, exchange.id) })
    throw thrown
  }
}

const cancelFacts = {
  bucket: 'jobs',
  summary: 'Cancel request',
  description: 'Cancels a request that waits or runs; its engine stops at once.',
  otherAnswers: {
    400: { response: Cancelled, description: '`job_already_finished`: The request has already ended.' },
    404: {
      response: Cancelled,
      description: '`not_found`: The request does not exist, or belongs to another organization.',
    },
  },
  ...ofRequest,
  response: Cancelled,
  status: 202,
} as const

export const requestRoutes = (owners: ViewOwners) => [
  slugRoute('GET /slug/requests/:id', 'user:read', {
    summary: 'Get request',
    description:
      'Returns the result of a request, or its progress. A request that failed is answered with 200 and its `error`.',
    ...ofRequest,
    response: GenerationRequestView,
    handle: async ({ params }, exchange) =>
      requestAnswer(await findPolled(params.id, exchange, owners), exchange, owners),
  }),
  slugRoute('GET /slug/requests/:id/status', 'user:read', {
    summary: 'Get status of request',
    description: 'Returns the status of a request, and its result once it has completed.',
    ...ofRequest,
    query: z.strictObject({
      logs: optionalString('`1` or `true`: return the log of the request too.'),
    }),
    response: GenerationStatus,
    handle: async ({ params }, exchange) => {
      const job = await findPolled(params.id, exchange, owners)
      const logs = wantsLogs(exchange) ? await owners.jobs.logs(job) : undefined
      return new JsonText(JSON.stringify(await statusView(job, exchange, owners, logs)))
    },
  }),
  slugRoute('GET /slug/requests/:id/logs', 'user:read', {
    summary: 'List log lines of request',
    description: 'Returns what the engine logged while it ran the request, oldest first.',
    ...ofRequest,
    response: Logs,
    handle: async ({ params }, exchange) => {
      const job = await findPolled(params.id, exchange, owners)
      return { logs: (await owners.jobs.logs(job)).map(logView) }
    },
  }),
  slugRoute('POST /slug/requests/:id/cancel', 'user:write', {
    ...cancelFacts,
    handle: ({ params }, exchange) => cancel(params.id, exchange, owners),
  }),
  slugRoute('PUT /slug/requests/:id/cancel', 'user:write', {
    ...cancelFacts,
    handle: ({ params }, exchange) => cancel(params.id, exchange, owners),
  }),
  slugRoute('GET /slug/requests/:id/status/stream', 'user:read', {
    summary: 'Stream status of request',
    description:
      'The answer is a stream of server-sent events: the status of the request after each change, until its end. If the token is revoked, expires or loses the scope, the stream ends within 2 s with an `error` event.',
    events: 'GenerationStatus',
    ...ofRequest,
    query: z.strictObject({
      logs: optionalString('`1` or `true`: send the log of the request too.'),
    }),
    answer: async exchange => {
      const job = await findRequest(exchange.params.id!, exchange, owners)
      exchange.header('x-fal-request-id', queueIdOf(job.id)).header('x-job-id', job.id)
      const logs = wantsLogs(exchange)
      await streamStatus(
        exchange,
        job,
        async now => statusView(now, exchange, owners, logs ? await owners.jobs.logs(now) : undefined),
        owners,
      )
    },
  }),
]
