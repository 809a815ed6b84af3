import { Failure } from '../../../core/failure.ts'
import { queueIdOf } from '../../../core/ids.ts'
import type { Registry } from '../../../core/models/registry.ts'
import type { JobRecord, LogLine, NewDelivery } from '../../../core/store/store.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { type Embedded, JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { errorOf, errorType, logView, outputOf } from '../../views/generation-request.ts'
import { hasEnded, type UrlReader } from '../../views/job-record.ts'
import { falFailure } from './errors.ts'

const prefix = 'fal-ai/'

/** Returns the slug for an application id of fal's clients: without `fal-ai/` if only the shorter slug exists. */
export function appSlug(app: string, { bySlug }: Pick<Registry, 'bySlug'>): string {
  const shorter = app.slice(prefix.length)
  return app.startsWith(prefix) && !bySlug(app) && bySlug(shorter) ? shorter : app
}

/** Returns the URLs of a request. fal's Python client uses them unchanged. */
export function falUrls(job: JobRecord, exchange: ClientExchange) {
  const app = job.slug === null ? '' : `/${job.slug.split('/').map(encodeURIComponent).join('/')}`
  const url = `${exchange.origin}/fal/queue${app}/requests/${queueIdOf(job.id)}`
  return { response_url: url, status_url: `${url}/status`, cancel_url: `${url}/cancel` }
}

/** Returns the answer to a submission. As at fal, the status is 200 and the state is always `IN_QUEUE`. */
export function falSubmitted(job: JobRecord, exchange: ClientExchange, { jobs }: Owners<'jobs'>) {
  const request_id = queueIdOf(job.id)
  return {
    status: 'IN_QUEUE' as const,
    request_id,
    gateway_request_id: request_id,
    queue_position: jobs.progressOf(job).queuePosition ?? 0,
    ...falUrls(job, exchange),
  }
}

/** Returns the status of a request. There are three states: a failed request is `COMPLETED` and has `error`. */
export function falStatus(
  job: JobRecord,
  exchange: ClientExchange,
  logs: readonly LogLine[],
  { jobs }: Owners<'jobs'>,
) {
  const request_id = queueIdOf(job.id)
  const urls = falUrls(job, exchange)
  const lines = logs.map(logView)
  if (job.status === 'pending') {
    const { queuePosition } = jobs.progressOf(job)
    return { status: 'IN_QUEUE' as const, request_id, queue_position: queuePosition ?? 0, logs: lines, ...urls }
  }
  if (job.status === 'processing') return { status: 'IN_PROGRESS' as const, request_id, logs: lines, ...urls }
  const { startedAt, finishedAt } = job
  const error = errorOf(job)
  return {
    status: 'COMPLETED' as const,
    request_id,
    logs: lines,
    metrics: {
      inference_time: startedAt === null || finishedAt === null ? null : Math.max(0, finishedAt - startedAt) / 1000,
    },
    ...(error ? { error: error.message, error_type: errorType(job) } : {}),
    ...urls,
  }
}

/** Sets the header with the id of the request. */
export const setRequestIdHeader = (job: JobRecord, exchange: ClientExchange): void =>
  void exchange.header('x-fal-request-id', queueIdOf(job.id))

/** Returns only the output of the request, or its error. Throws Failure `output_expired`. */
export async function falResult(job: JobRecord, exchange: ClientExchange, owners: Owners<'files'>): Promise<JsonText> {
  // Clients compare exactly this sentence.
  if (!hasEnded(job)) return new JsonText('{"detail":"Request is still in progress"}', 400)
  if (job.status === 'completed') {
    const embedded: Embedded[] = []
    return new JsonText(JSON.stringify(await outputOf(job, exchange, owners, embedded)), 200, embedded)
  }
  const { status, body, headers } = falFailure(job)
  exchange.addHeaders(headers)
  return new JsonText(JSON.stringify(body), status)
}

/** The body of fal's webhooks: the output alone, or the error. */
export async function falWebhookBody(
  delivery: NewDelivery,
  from: UrlReader,
  owners: Owners<'files' | 'jobs'>,
): Promise<string> {
  const id = queueIdOf(delivery.subject.jobId!)
  const ids = { request_id: id, gateway_request_id: id }
  const job = await owners.jobs.find(delivery.organizationId, delivery.subject.jobId!)
  if (!job) return JSON.stringify({ ...ids, status: 'ERROR', error: 'The request was removed.', payload: null })
  if (job.status !== 'completed') {
    const { body } = falFailure(job)
    const error = job.error?.message ?? 'The request was cancelled.'
    return JSON.stringify({ ...ids, status: 'ERROR', error, payload: body })
  }
  try {
    return JSON.stringify({ ...ids, status: 'OK', error: null, payload: await outputOf(job, from, owners) })
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown
    return JSON.stringify({ ...ids, status: 'OK', error: null, payload: null, payload_error: thrown.message })
  }
}
