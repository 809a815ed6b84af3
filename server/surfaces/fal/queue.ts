import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { queueIdOf } from '../../../core/ids.ts'
import { slotWaitMs } from '../../../core/models/model.ts'
import { integer, namedObject, oneOf, string } from '../../../core/schemas/fields.ts'
import type { JobRecord, LogLine } from '../../../core/store/store.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { sendJson } from '../../http/run-route.ts'
import { findRequest, requestUrls } from '../../views/generation-request.ts'
import { hasEnded } from '../../views/job-record.ts'
import { jobTermsOf } from '../../work/job-terms.ts'
import { nameModel } from '../../work/run-call.ts'
import { streamStatus, wantsLogs } from '../../work/stream-status.ts'
import { type SubmitOwners, submitGeneration } from '../../work/submit-generation.ts'
import { waitForEnd } from '../../work/wait.ts'
import { falErrors, falRoute, ownTimeout } from './errors.ts'
import { appSlug, falResult, falStatus, falSubmitted, falUrls, setRequestIdHeader } from './view.ts'

const suffix = '/stream'

/** Returns the answer for an unfinished request: the client must not retry it, and gets the URLs to poll. */
function unfinished(job: JobRecord, exchange: ClientExchange) {
  const request_id = queueIdOf(job.id)
  const message = `Request ${request_id} has not ended yet and continues. Read it at its response_url.`
  exchange.addHeaders([...ownTimeout, 'x-fal-error-type', 'request_timeout', 'x-fal-retryable', 'false'])
  const body = { detail: message, message, error_type: 'request_timeout', request_id, ...falUrls(job, exchange) }
  return new JsonText(JSON.stringify(body), 504)
}

/** Returns an event of the stream: the progress, and at the end the output or the error. */
async function eventOf(job: JobRecord, exchange: ClientExchange, owners: Owners<'files' | 'jobs'>) {
  if (hasEnded(job)) return JSON.parse((await falResult(job, exchange, owners)).text) as object
  const { progress } = owners.jobs.progressOf(job)
  return { request_id: queueIdOf(job.id), progress: progress ?? 0 }
}

/** The routes of fal's direct calls: what its clients send to `https://fal.run`. */
export const falRunRoutes = (owners: SubmitOwners) => [
  falRoute('POST /fal/run/**:path', 'user:write', {
    bucket: 'jobs',
    summary: 'Run fal request',
    description:
      'Creates an image or a video and answers with the result. The path is a slug; with `/stream` after it the answer is a stream of server-sent events, and the last event is the result. A request that has not ended after `sync_wait` (120 s by default) is answered with 504 and continues in the background.',
    events: 'FalRunEvent',
    errorCodes: [...errorGroups.submit, ...errorGroups.media, ...errorGroups.wait],
    largeBody: true,
    params: z.object({
      path: string('A slug, with `/stream` after it for server-sent events. It may contain `/`.'),
    }),
    body: FalInput,
    example: { prompt: 'A cat on a mat.' },
    response: FalOutput,
    async handle({ params: { path }, body }, exchange) {
      const { config, registry } = owners
      const app = appSlug(path, registry)
      const streamed = app.endsWith(suffix) && !registry.bySlug(app)
      const slug = streamed ? appSlug(path.slice(0, -suffix.length), registry) : app
      const terms = jobTermsOf(exchange, owners)
      const { job, model } = await submitGeneration(exchange, { target: { slug }, body, terms }, owners)
      setRequestIdHeader(job, exchange)
      if (streamed) {
        await streamStatus(exchange, job, now => eventOf(now, exchange, owners), owners, { generation: true })
        return new JsonText('')
      }
      const waitMs = config.limits.sync_wait
      const startMs = terms.startTimeoutMs ?? slotWaitMs(model)
      const now = hasEnded(job) ? job : await waitForEnd(exchange, job, { waitMs, startMs }, owners)
      nameModel(exchange, now)
      return hasEnded(now) ? falResult(now, exchange, owners) : unfinished(now, exchange)
    },
  }),
]

const FalInput = z
  .record(z.string(), z.unknown())
  .meta({ id: 'FalInput', description: 'The inputs of the task of the slug, as under `/slug`.' })
const { response_url, status_url, cancel_url } = requestUrls
const request_id = string('Id of the request: `q_…`.')
const urls = { request_id, response_url, status_url, cancel_url }
const FalSubmitted = namedObject('FalSubmitted', 'A request that was accepted.', {
  status: z.literal('IN_QUEUE'),
  ...urls,
  gateway_request_id: string('The same as `request_id`.'),
  queue_position: integer('How many requests are before it.'),
})
const FalCancelled = namedObject('FalCancelled', 'Whether a request is cancelled.', {
  status: oneOf('`CANCELLATION_REQUESTED` with 202, `ALREADY_COMPLETED` with 400, `NOT_FOUND` with 404.', [
    'CANCELLATION_REQUESTED',
    'ALREADY_COMPLETED',
    'NOT_FOUND',
  ]),
  request_id,
})
export const FalOutput = z
  .record(z.string(), z.unknown())
  .meta({ id: 'FalOutput', description: 'The result of the task, or the status of the request.' })

const Path = z.object({
  path: string('A slug, with `/requests/{id}…` after it for a request. It may contain `/`.'),
})

/**
 * `<anything>/requests/<id>/<what>`: fal's clients omit parts of the app's name, so only the id identifies a request.
 */
const form = /^(?:.*\/)?requests\/([^/]+)(?:\/(status|status\/stream|cancel))?$/

function parsePath({ path }: { path: string }) {
  const match = form.exec(path)
  if (match) return { requestId: match[1]!, what: match[2] ?? 'result' }
  throw new Failure(
    'unknown_url',
    `There is no request at /fal/queue/${path.slice(0, 100)}. Use GET /fal/queue/<app>/requests/<id>, or POST /fal/queue/<app>.`,
  )
}
const unknown = (what: string) =>
  new Failure('unknown_url', `'${what}' of a request is not supported with this method. The reference is at /docs.`)

async function status(job: JobRecord, exchange: ClientExchange, { jobs }: Owners<'jobs'>) {
  const logs = wantsLogs(exchange) ? await jobs.logs(job) : []
  return new JsonText(JSON.stringify(falStatus(job, exchange, logs, { jobs })), hasEnded(job) ? 200 : 202)
}

function follow(job: JobRecord, exchange: ClientExchange, owners: Owners<'jobs'>) {
  const newLines = openNewLines()
  const logs = wantsLogs(exchange)
  return streamStatus(
    exchange,
    job,
    async now => falStatus(now, exchange, logs ? newLines(await owners.jobs.logs(now)) : [], owners),
    owners,
  )
}

async function answerGet(exchange: ClientExchange, owners: Owners<'files' | 'jobs'>) {
  const { requestId, what } = parsePath({ path: exchange.params.path ?? '' })
  if (what === 'cancel') throw unknown(what)
  const job = await findRequest(requestId, exchange, owners)
  setRequestIdHeader(job, exchange)
  if (what === 'status/stream') return follow(job, exchange, owners)
  await sendJson(exchange, await (what === 'status' ? status(job, exchange, owners) : falResult(job, exchange, owners)))
}

async function cancel(exchange: ClientExchange, requestId: string, owners: Owners<'jobs'>) {
  const job = await findRequest(requestId, exchange, owners)
  setRequestIdHeader(job, exchange)
  const finished = new JsonText(JSON.stringify({ status: 'ALREADY_COMPLETED', request_id: requestId }), 400)
  // Also for a second cancellation, for which `/api/jobs` repeats its first answer.
  if (hasEnded(job)) return finished
  try {
    await owners.jobs.cancel(job.organizationId, job.id)
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.code !== 'job_already_finished') throw thrown
    return finished
  }
  return new JsonText(JSON.stringify({ status: 'CANCELLATION_REQUESTED', request_id: requestId }), 202)
}

/** Adds fal's status to refused cancellations. */
const cancelErrors: typeof falErrors = (failure, exchange) => {
  const falError = falErrors(failure, exchange)
  return failure.code === 'not_found' ? { ...falError, body: { status: 'NOT_FOUND', ...falError.body } } : falError
}

/** The routes of fal's queue: what its clients send to `https://queue.fal.run`. */
export const falQueueRoutes = (owners: SubmitOwners) => [
  falRoute('POST /fal/queue/**:path', 'user:write', {
    bucket: 'jobs',
    summary: 'Submit fal request',
    description:
      "Creates an image or a video in the background and answers at once. The path is a slug; a leading `fal-ai/` is ignored if no model has such a slug. The headers `X-Fal-Request-Timeout`, `X-Fal-Queue-Priority` and `X-Fal-Object-Lifecycle-Preference` work as at fal, and so does `?fal_webhook=`: the URL receives the result with fal's body and signature; the keys are at `/fal/rest/.well-known/jwks.json`.",
    errorCodes: [...errorGroups.submit, ...errorGroups.media],
    largeBody: true,
    params: Path,
    body: FalInput,
    example: { prompt: 'A cat on a mat.' },
    response: FalSubmitted,
    async handle({ params, body }, exchange) {
      const { job } = await submitGeneration(
        exchange,
        { target: { slug: appSlug(params.path, owners.registry) }, body, terms: jobTermsOf(exchange, owners) },
        owners,
      )
      setRequestIdHeader(job, exchange)
      return falSubmitted(job, exchange, owners)
    },
  }),
  falRoute('GET /fal/queue/**:path', 'user:read', {
    summary: 'Get fal request',
    description:
      '`<slug>/requests/<id>` returns the result (400 until there is one), `…/status` the status (202 until the end; with `?logs=1` the log too), and `…/status/stream` a stream of server-sent events with the status after each change.',
    events: 'FalStatus',
    otherAnswers: { 202: { response: FalOutput, description: 'The status of a request that has not ended.' } },
    errorCodes: [
      'invalid_value',
      'unknown_url',
      'not_found',
      'output_expired',
      'no_capacity',
      'timeout',
      'worker_error',
    ],
    params: Path,
    response: FalOutput,
    answer: exchange => answerGet(exchange, owners),
  }),
  falRoute('PUT /fal/queue/**:path', 'user:write', {
    bucket: 'jobs',
    summary: 'Cancel fal request',
    description: 'Cancels the request of the path `<slug>/requests/<id>/cancel`; its engine stops at once.',
    otherAnswers: { 400: { response: FalCancelled, description: 'The request has already ended.' } },
    errorCodes: ['unknown_url', 'not_found', 'output_expired'],
    params: Path,
    response: FalCancelled,
    status: 202,
    errors: cancelErrors,
    handle({ params }, exchange) {
      const { requestId, what } = parsePath(params)
      if (what !== 'cancel') throw unknown(what)
      return cancel(exchange, requestId, owners)
    },
  }),
]

/** Returns only lines that the previous call did not have, because fal's client keeps lines that a stream has sent. */
function openNewLines(): (lines: readonly LogLine[]) => readonly LogLine[] {
  let last: LogLine | undefined
  return lines => {
    const known = lines.findLastIndex(({ at, message }) => at === last?.at && message === last.message)
    last = lines.at(-1) ?? last
    return lines.slice(known + 1)
  }
}
