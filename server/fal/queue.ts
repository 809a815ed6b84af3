import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import type { JobRecord, LogLine } from '../../core/store/store.ts'
import { hasEnded } from '../api/job-record.ts'
import type { Call } from '../call.ts'
import { sendJson } from '../dispatch.ts'
import type { Owners } from '../owners.ts'
import { JsonText, route } from '../route.ts'
import { jobTermsOf } from '../slug/job-terms.ts'
import { wantsLogs } from '../slug/requests.ts'
import { streamStatus } from '../slug/stream.ts'
import { type SubmitOwners, submitGeneration } from '../slug/submit.ts'
import { findRequest } from '../slug/view.ts'
import { appSlug } from './app-slug.ts'
import { falErrors } from './errors.ts'
import { falResult, falStatus, falSubmitted, setRequestIdHeader } from './view.ts'

const tag = 'fal'

export const FalInput = z
  .record(z.string(), z.unknown())
  .meta({ id: 'FalInput', description: 'What the model takes: as under `/slug`.' })
const urls = { request_id: z.string(), response_url: z.string(), status_url: z.string(), cancel_url: z.string() }
const FalSubmitted = z
  .object({ status: z.literal('IN_QUEUE'), ...urls, gateway_request_id: z.string(), queue_position: z.int() })
  .meta({ id: 'FalSubmitted' })
const FalCancelled = z
  .object({ status: z.enum(['CANCELLATION_REQUESTED', 'ALREADY_COMPLETED', 'NOT_FOUND']), request_id: z.string() })
  .meta({ id: 'FalCancelled' })
export const FalOutput = z
  .record(z.string(), z.unknown())
  .meta({ id: 'FalOutput', description: 'What the model made, or how the request is doing.' })

const Path = z.object({ path: z.string() })

/** `<anything>/requests/<id>/<what>`: fal's clients leave parts of the app's name out, so the id alone says which. */
const form = /^(?:.*\/)?requests\/([^/]+)(?:\/(status|status\/stream|cancel))?$/

function asked({ path }: { path: string }): { requestId: string; what: string } {
  const match = form.exec(path)
  if (match) return { requestId: match[1]!, what: match[2] ?? 'result' }
  throw new Failure(
    'unknown_url',
    `There is no request at /fal/queue/${path.slice(0, 100)}. Ask at /fal/queue/<app>/requests/<id>, or POST to /fal/queue/<app>.`,
  )
}
const unknown = (what: string) =>
  new Failure('unknown_url', `A request cannot be asked for its '${what}' in this way. The reference is at /docs.`)

async function status(job: JobRecord, call: Call, { jobs }: Pick<Owners, 'jobs'>): Promise<JsonText> {
  const logs = wantsLogs(call) ? await jobs.logs(job) : []
  return new JsonText(JSON.stringify(falStatus(job, call, logs, { jobs })), hasEnded(job) ? 200 : 202)
}

function follow(job: JobRecord, call: Call, owners: Pick<Owners, 'jobs'>): Promise<void> {
  const newLines = openNewLines()
  const logs = wantsLogs(call)
  return streamStatus(
    call,
    job,
    async now => falStatus(now, call, logs ? newLines(await owners.jobs.logs(now)) : [], owners),
    owners,
  )
}

async function ask(call: Call, owners: Pick<Owners, 'files' | 'jobs'>): Promise<void> {
  const { requestId, what } = asked({ path: call.params.path ?? '' })
  if (what === 'cancel') throw unknown(what)
  const job = await findRequest(requestId, call, owners)
  setRequestIdHeader(job, call)
  if (what === 'status/stream') return follow(job, call, owners)
  await sendJson(call, await (what === 'status' ? status(job, call, owners) : falResult(job, call, owners)))
}

async function cancel(call: Call, requestId: string, owners: Pick<Owners, 'jobs'>): Promise<JsonText> {
  const job = await findRequest(requestId, call, owners)
  setRequestIdHeader(job, call)
  const finished = new JsonText(JSON.stringify({ status: 'ALREADY_COMPLETED', request_id: requestId }), 400)
  // A second cancellation too, where the API of jobs repeats its first answer.
  if (hasEnded(job)) return finished
  try {
    await owners.jobs.cancel(job.organizationId, job.id)
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.code !== 'job_already_finished') throw thrown
    return finished
  }
  return new JsonText(JSON.stringify({ status: 'CANCELLATION_REQUESTED', request_id: requestId }), 202)
}

/** Refused cancellations have fal's word for it beside the reason. */
const cancelErrors: typeof falErrors = (failure, call) => {
  const falError = falErrors(failure, call)
  return failure.code === 'not_found' ? { ...falError, body: { status: 'NOT_FOUND', ...falError.body } } : falError
}

/** fal's queue: what its clients send to `https://queue.fal.run`. */
export const falQueueRoutes = (owners: SubmitOwners) => [
  route({
    method: 'POST',
    path: '/fal/queue/**:path',
    scope: 'user:write',
    bucket: 'jobs',
    tag,
    summary: "Submit a request as fal's clients do",
    description:
      'The path is a slug; `fal-ai/` before it is dropped where nothing is offered under it. The headers `X-Fal-Request-Timeout`, `X-Fal-Queue-Priority` and `X-Fal-Object-Lifecycle-Preference` count as they do at fal.',
    largeBody: true,
    params: Path,
    body: FalInput,
    example: { prompt: 'A cat on a mat.' },
    response: FalSubmitted,
    errors: falErrors,
    async handle({ params, body }, call) {
      const { job } = await submitGeneration(
        call,
        { target: { slug: appSlug(params.path, owners.registry) }, body, terms: jobTermsOf(call) },
        owners,
      )
      setRequestIdHeader(job, call)
      return falSubmitted(job, call, owners)
    },
  }),
  route({
    method: 'GET',
    path: '/fal/queue/**:path',
    scope: 'user:read',
    tag,
    summary: 'The result of a request, its status, or the stream of it',
    description:
      '`<app>/requests/<id>` is the result (400 while there is none), `…/status` says how it is doing (202 until it has ended; `?logs=1`), `…/status/stream` tells every change.',
    params: Path,
    response: FalOutput,
    errors: falErrors,
    answer: call => ask(call, owners),
  }),
  route({
    method: 'PUT',
    path: '/fal/queue/**:path',
    scope: 'user:write',
    bucket: 'jobs',
    tag,
    summary: 'Cancel a request: `<app>/requests/<id>/cancel`',
    params: Path,
    response: FalCancelled,
    status: 202,
    errors: cancelErrors,
    handle({ params }, call) {
      const { requestId, what } = asked(params)
      if (what !== 'cancel') throw unknown(what)
      return cancel(call, requestId, owners)
    },
  }),
]

/** Which lines are new since it was asked last: fal's client keeps those that a stream has sent it. */
function openNewLines(): (lines: readonly LogLine[]) => readonly LogLine[] {
  let last: LogLine | undefined
  return lines => {
    const known = lines.findLastIndex(({ at, message }) => at === last?.at && message === last.message)
    last = lines.at(-1) ?? last
    return lines.slice(known + 1)
  }
}
