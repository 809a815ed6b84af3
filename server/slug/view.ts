import { Failure } from '../../core/failure.ts'
import { isId, jobIdOf, queueIdOf } from '../../core/ids.ts'
import type { JobRecord, LargeResult, LogLine } from '../../core/store/store.ts'
import type { LinkedResult } from '../../core/tasks/generation/result-links.ts'
import { filesOf, hasFiles, shownResult } from '../../core/tasks/registry.ts'
import { hasEnded } from '../api/job-record.ts'
import type { Call } from '../call.ts'
import { Embedded, readResult } from '../embedded.ts'
import type { Owners } from '../owners.ts'
import { JsonText } from '../route.ts'
import { errorType } from './errors.ts'

type View = Record<string, unknown>
/** The owners that views of a request need. */
export type ViewOwners = Pick<Owners, 'files' | 'jobs'>

const seconds = (ms: number) => Math.floor(ms / 1000)
const spent = (ms: number) => Math.max(0, Math.round(ms)) / 1000

const missing = (id: string) => new Failure('not_found', `Request ${id.slice(0, 64)} was not found.`)

/**
 * Finds the job of a request id in the caller's organization. Throws Failure `not_found`, also for a request of another
 * organization, and `output_expired` for one that is no longer kept.
 */
export async function findRequest(requestId: string, call: Call, { jobs }: Pick<Owners, 'jobs'>): Promise<JobRecord> {
  if (!requestId.startsWith('q_') || !isId(requestId)) throw missing(requestId)
  const { organizationId } = call.caller
  const id = jobIdOf(requestId)
  const job = await jobs.find(organizationId, id)
  if (job?.kind === 'async') return job
  if (!job && (await jobs.wasRemoved(organizationId, id)))
    throw new Failure(
      'output_expired',
      `Request ${requestId} is no longer kept: it was deleted, or its retention is over.`,
    )
  throw missing(requestId)
}

/** Returns the addresses of a request. */
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
 * Returns the output of a request, with addresses of its files. Adds a large output to `embedded`; without it the
 * output is left out. Throws Failure `output_expired` when one of its files is no longer kept.
 */
export async function outputOf(
  job: JobRecord,
  { origin }: Pick<Call, 'origin'>,
  { files }: Pick<Owners, 'files'>,
  embedded?: Embedded[],
): Promise<LinkedResult | View> {
  const expired = () =>
    new Failure(
      'output_expired',
      `The output of request ${queueIdOf(job.id)} is no longer kept. Submit the request again.`,
    )
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

/** Returns the error of a request that failed or was cancelled; undefined for others. */
export function errorOf({ id, status, error }: JobRecord): { code: string; message: string; type: string } | undefined {
  if (status === 'cancelled')
    return { code: 'cancelled', message: `Request ${queueIdOf(id)} was cancelled.`, type: 'invalid_request_error' }
  return status === 'failed' && error ? { code: error.code, message: error.message, type: error.type } : undefined
}

/** How long a request waited and ran, in seconds. */
interface Times {
  inference: number
  queue: number
}
const timesOf = ({ createdAt, startedAt, finishedAt }: JobRecord): Times => ({
  inference: startedAt === null || finishedAt === null ? 0 : spent(finishedAt - startedAt),
  queue: startedAt === null ? 0 : spent(startedAt - createdAt),
})

/** Returns the progress of a request that has not ended. */
function progressView(job: JobRecord, { jobs }: Pick<Owners, 'jobs'>): View {
  const { progress, queuePosition, etaMs, waitingFor } = jobs.progressOf(job)
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

/** Returns all of a completed request but its id and status. */
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

/** Returns the answer to `GET /slug/requests/{id}`. Throws Failure `output_expired`. */
export async function requestAnswer(
  job: JobRecord,
  call: Call,
  owners: ViewOwners,
  status?: number,
): Promise<JsonText> {
  const embedded: Embedded[] = []
  return new JsonText(JSON.stringify(await requestView(job, call, owners, embedded)), status, embedded)
}

/** Returns the same as a value. A large output is left out without `embedded`. */
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
  return { request_id, status: 'processing', ...progressView(job, owners) }
}

const queueStatuses = {
  pending: 'IN_QUEUE',
  processing: 'IN_PROGRESS',
  completed: 'COMPLETED',
  failed: 'FAILED',
  cancelled: 'FAILED',
} as const satisfies Record<JobRecord['status'], string>
/** Returns the status in the bodies of results. */
export const bodyStatusOf = (job: Pick<JobRecord, 'status'>): 'processing' | 'completed' | 'failed' =>
  hasEnded(job) ? (job.status === 'completed' ? 'completed' : 'failed') : 'processing'
/** Returns the status in status views and streams. */
export const queueStatusOf = ({ status }: Pick<JobRecord, 'status'>) => queueStatuses[status]

export const logView = ({ at, level, message }: LogLine) => ({
  timestamp: new Date(at).toISOString(),
  level,
  message,
  source: 'USER',
})

/**
 * Returns the answer to `GET /slug/requests/{id}/status`, with the output unless that is large. An output that is no
 * longer kept is an error of the completed request.
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
    ...(hasEnded(job) ? {} : progressView(job, owners)),
    ...(logs ? { logs: logs.map(logView) } : {}),
  }
  const urls = urlsOf(request_id, call)
  if (job.status === 'completed') {
    const metricsOf = ({ inference, queue }: Times) => ({ inference_time: inference, queue_time: queue })
    try {
      const payload = await payloadOf(job, call, owners)
      const metrics = metricsOf(payload.timings)
      // The specification does not say whether the members are at the top level or in `result`, so they are in both.
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
