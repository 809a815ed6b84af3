import { Failure } from '../../core/failure.ts'
import { isId, jobIdOf, queueIdOf } from '../../core/ids.ts'
import type { JobRecord, LargeResult, LogLine } from '../../core/store/store.ts'
import type { LinkedResult } from '../../core/tasks/generation/linked.ts'
import { filesOf, hasFiles, shownResult } from '../../core/tasks/result-files.ts'
import { hasEnded } from '../api/job-record.ts'
import type { Call } from '../call.ts'
import { Embedded, readResult } from '../embedded.ts'
import type { Owners } from '../owners.ts'
import { JsonText } from '../route.ts'
import { errorType } from './errors.ts'

type View = Record<string, unknown>
/** What a view of a request in any state needs. */
export type ViewOwners = Pick<Owners, 'files' | 'jobs'>

const seconds = (ms: number) => Math.floor(ms / 1000)
const spent = (ms: number) => Math.max(0, Math.round(ms)) / 1000

const missing = (id: string) => new Failure('not_found', `Request ${id.slice(0, 64)} was not found.`)

/**
 * The job of the caller's organization behind a request id. Throws Failure `not_found` for a foreign one like for none,
 * and `output_expired` for one that is no longer kept.
 */
export async function findRequest(requestId: string, call: Call, { jobs }: Pick<Owners, 'jobs'>): Promise<JobRecord> {
  if (!requestId.startsWith('q_') || !isId(requestId)) throw missing(requestId)
  const { organizationId } = call.caller
  const id = jobIdOf(requestId)
  const job = await jobs.find(organizationId, id)
  if (job?.kind === 'async') return job
  if (!job && (await jobs.gone(organizationId, id)))
    throw new Failure('output_expired', `Request ${requestId} is no longer kept: it was deleted, or its time was over.`)
  throw missing(requestId)
}

/** Where the request is asked about. */
export function urlsOf(requestId: string, call: Call) {
  const url = `${call.origin}/slug/requests/${requestId}`
  return {
    response_url: url,
    status_url: `${url}/status`,
    cancel_url: `${url}/cancel`,
    stream_url: `${url}/status/stream`,
  }
}

/**
 * What was made, files by address; the members of what is large are put among the embedded, and left out without those.
 * Throws Failure `output_expired` when a file of it is no longer kept.
 */
export async function outputOf(
  job: JobRecord,
  { origin }: Call,
  { files }: Pick<Owners, 'files'>,
  embedded?: Embedded[],
): Promise<LinkedResult | View> {
  const expired = () =>
    new Failure('output_expired', `The output of request ${queueIdOf(job.id)} is no longer kept. Ask for it anew.`)
  if (job.result === null || (job.expiresAt !== null && job.expiresAt <= Date.now())) throw expired()
  const stored = job.result
  if (!hasFiles(job.task)) return typeof stored === 'string' ? (JSON.parse(stored) as View) : large(stored, embedded)
  const result = JSON.parse(await readResult(stored)) as unknown
  for (const id of filesOf(job.task, result)) if (!(await files.find(job.organizationId, id))) throw expired()
  return shownResult(job.task, result, file => files.link(file, origin)) as LinkedResult | View
}

function large(result: LargeResult, embedded?: Embedded[]): View {
  if (!embedded) return {}
  const members = new Embedded(result)
  embedded.push(members)
  return { ...members.asMembers() }
}

/** What a request that has not completed is told as its error; undefined while there is none. */
export function errorOf({ id, status, error }: JobRecord): { code: string; message: string; type: string } | undefined {
  if (status === 'cancelled')
    return { code: 'cancelled', message: `Request ${queueIdOf(id)} was cancelled.`, type: 'invalid_request_error' }
  return status === 'failed' && error ? { code: error.code, message: error.message, type: error.type } : undefined
}

/** How long it waited and ran, in seconds. */
interface Times {
  inference: number
  queue: number
}
const timesOf = ({ createdAt, startedAt, finishedAt }: JobRecord): Times => ({
  inference: startedAt === null || finishedAt === null ? 0 : spent(finishedAt - startedAt),
  queue: startedAt === null ? 0 : spent(startedAt - createdAt),
})

/** The progress of a request that has not ended. */
function standingView(job: JobRecord, { jobs }: Pick<Owners, 'jobs'>): View {
  const { progress, queuePosition, etaMs, waitingFor } = jobs.standing(job)
  return {
    ...(job.status === 'pending' ? { queue_position: queuePosition ?? 0 } : {}),
    ...(progress === null ? {} : { progress }),
    ...(etaMs === null ? {} : { eta_seconds: Math.ceil(etaMs / 1000) }),
    ...(waitingFor
      ? {
          waiting_for: {
            reason: waitingFor.reason,
            detail: waitingFor.detail,
            eta_seconds: waitingFor.etaMs === null ? null : Math.ceil(waitingFor.etaMs / 1000),
          },
        }
      : {}),
  }
}

/** Everything of a completed request but its id and status. */
async function payloadOf(
  job: JobRecord,
  call: Call,
  owners: Pick<Owners, 'files'>,
  embedded?: Embedded[],
): Promise<View & { timings: Times }> {
  const output: View = { ...(await outputOf(job, call, owners, embedded)) }
  const times = timesOf(job)
  return {
    ...output,
    timings: { ...times, ...(output.timings as object | undefined) },
    model_id: job.modelId,
    created_at: seconds(job.createdAt),
    ...(job.finishedAt === null ? {} : { completed_at: seconds(job.finishedAt) }),
  }
}

/** `GET /slug/requests/{id}`. Throws Failure `output_expired`. */
export async function requestAnswer(
  job: JobRecord,
  call: Call,
  owners: ViewOwners,
  status?: number,
): Promise<JsonText> {
  const embedded: Embedded[] = []
  return new JsonText(JSON.stringify(await requestView(job, call, owners, embedded)), status, embedded)
}

/** The same as a value; what is large is left out without `embedded`. */
export async function requestView(
  job: JobRecord,
  call: Call,
  owners: ViewOwners,
  embedded?: Embedded[],
): Promise<View> {
  const request_id = queueIdOf(job.id)
  if (job.status === 'completed')
    return { request_id, status: 'completed', ...(await payloadOf(job, call, owners, embedded)) }
  if (hasEnded(job)) return { request_id, status: 'failed', error: errorOf(job), model_id: job.modelId }
  return { request_id, status: 'processing', ...standingView(job, owners) }
}

const queueStatuses = {
  pending: 'IN_QUEUE',
  processing: 'IN_PROGRESS',
  completed: 'COMPLETED',
  failed: 'FAILED',
  cancelled: 'FAILED',
} as const satisfies Record<JobRecord['status'], string>
/** The status as the bodies of results have it. */
export const bodyStatusOf = (job: Pick<JobRecord, 'status'>): 'processing' | 'completed' | 'failed' =>
  hasEnded(job) ? (job.status === 'completed' ? 'completed' : 'failed') : 'processing'
/** The status as it is followed. */
export const queueStatusOf = ({ status }: Pick<JobRecord, 'status'>) => queueStatuses[status]

export const logView = ({ at, level, message }: LogLine) => ({
  timestamp: new Date(at).toISOString(),
  level,
  message,
  source: 'USER',
})

/**
 * `GET /slug/requests/{id}/status`, with what was made unless that is large. An output that is no longer kept is told as
 * an error of a completed request.
 */
export async function statusView(
  job: JobRecord,
  call: Call,
  owners: ViewOwners,
  logs: readonly LogLine[] | undefined,
): Promise<View> {
  const request_id = queueIdOf(job.id)
  const head = {
    status: queueStatusOf(job),
    request_id,
    ...(hasEnded(job) ? {} : standingView(job, owners)),
    ...(logs ? { logs: logs.map(logView) } : {}),
  }
  const urls = urlsOf(request_id, call)
  if (job.status === 'completed') {
    const metricsOf = ({ inference, queue }: Times) => ({ inference_time: inference, queue_time: queue })
    try {
      const payload = await payloadOf(job, call, owners)
      const metrics = metricsOf(payload.timings)
      // Whether the result stands alone or inside is not said by the specification: it does both.
      const result = { request_id, status: 'completed', ...payload }
      return { ...payload, ...head, metrics, result, ...urls }
    } catch (thrown) {
      if (!(thrown instanceof Failure) || thrown.code !== 'output_expired') throw thrown
      const { code, message, type } = thrown
      return { ...head, metrics: metricsOf(timesOf(job)), error: { code, message, type }, ...urls }
    }
  }
  if (hasEnded(job)) return { ...head, error: errorOf(job), error_type: errorType(job), ...urls }
  return { ...head, ...urls }
}
