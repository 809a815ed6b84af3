import { Failure } from '../../../core/failure.ts'
import { queueIdOf } from '../../../core/ids.ts'
import type { JobRecord, LogLine } from '../../../core/store/store.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { Embedded, JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { errorOf, errorType, generationErrorBody, logView, outputOf } from '../../views/generation-request.ts'
import { hasEnded, waitingObject } from '../../views/job-record.ts'
import { seconds } from '../../views/view-of.ts'

/** Renders a failure in the form of the slug API. */
export const slugErrors = (failure: Failure, exchange: { id: string }): { status: number; body: object } => ({
  status: failure.status,
  body: generationErrorBody(failure, exchange.id),
})

/** Makes a route of the slug API. */
export const slugRoute = routeOf({ tag: 'Generation', errors: slugErrors })

type View = Record<string, unknown>
export type ViewOwners = Owners<'files' | 'jobs'>

const spent = (ms: number) => Math.max(0, Math.round(ms)) / 1000

/** Returns the addresses of a request. */
export function urlsOf(requestId: string, exchange: ClientExchange) {
  const url = `${exchange.origin}/slug/requests/${requestId}`
  return {
    response_url: url,
    status_url: `${url}/status`,
    cancel_url: `${url}/cancel`,
    stream_url: `${url}/status/stream`,
  }
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
function progressView(job: JobRecord, { jobs }: Owners<'jobs'>): View {
  const { progress, queuePosition, etaMs, waitingFor } = jobs.progressOf(job)
  return {
    ...(job.status === 'pending' ? { queue_position: queuePosition ?? 0 } : {}),
    ...(progress === null ? {} : { progress }),
    ...(etaMs === null ? {} : { eta_seconds: Math.ceil(etaMs / 1000) }),
    ...(waitingFor ? { waiting_for: waitingObject(waitingFor) } : {}),
  }
}

/** Returns all of a completed request but its id and status. */
async function payloadOf(job: JobRecord, exchange: ClientExchange, owners: Owners<'files'>, embedded?: Embedded[]) {
  const output: View = { ...(await outputOf(job, exchange, owners, embedded)) }
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
export async function requestAnswer(job: JobRecord, exchange: ClientExchange, owners: ViewOwners, status?: number) {
  const embedded: Embedded[] = []
  return new JsonText(JSON.stringify(await requestView(job, exchange, owners, embedded)), status, embedded)
}

/** Returns the same as a value. A large output is left out without `embedded`. */
export async function requestView(job: JobRecord, exchange: ClientExchange, owners: ViewOwners, embedded?: Embedded[]) {
  const request_id = queueIdOf(job.id)
  if (job.status === 'completed')
    return { request_id, status: 'completed', ...(await payloadOf(job, exchange, owners, embedded)) }
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

/**
 * Returns the answer to `GET /slug/requests/{id}/status`, with the output unless that is large. An output that is no
 * longer kept is an error of the completed request.
 */
export async function statusView(
  job: JobRecord,
  exchange: ClientExchange,
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
  const urls = urlsOf(request_id, exchange)
  if (job.status === 'completed') {
    const metricsOf = ({ inference, queue }: Times) => ({ inference_time: inference, queue_time: queue })
    try {
      const payload = await payloadOf(job, exchange, owners)
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
