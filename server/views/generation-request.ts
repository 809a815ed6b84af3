import { Failure, type FailureCode, type ValidationDetail } from '../../core/failure.ts'
import { isId, jobIdOf, queueIdOf } from '../../core/ids.ts'
import { string } from '../../core/schemas/fields.ts'
import type { JobRecord, LargeResult, LogLine } from '../../core/store/store.ts'
import type { LinkedResult } from '../../core/tasks/generation/result.ts'
import { filesOf, hasFiles, shownResult } from '../../core/tasks/registry.ts'
import { errorBody } from '../http/request/errors.ts'
import { Embedded, readResult } from '../http/request/json-text.ts'
import type { Owners } from '../http/request/owners.ts'
import type { UrlReader, Viewer } from './job-record.ts'

/** Returns the error details in FastAPI's format if the failure is about a field, else the message. */
export function detailOf({ validation, param, message, code }: Failure): string | ValidationDetail[] {
  if (validation) return validation
  if (param === undefined) return message
  // Names of headers begin with a capital, and names of body fields do not.
  return [{ loc: [/^[A-Z]/.test(param) ? 'header' : 'body', ...param.split('.')], msg: message, type: code }]
}

/** Returns the common error format with the members that fal's clients read. */
export const generationErrorBody = (failure: Failure, requestId: string): object => ({
  ...errorBody(failure, requestId),
  message: failure.message,
  detail: detailOf(failure),
})

const errorTypes: Partial<Record<FailureCode, string>> = {
  timeout: 'request_timeout',
  model_warming_up: 'startup_timeout',
  no_capacity: 'runner_scheduling_failure',
  worker_crashed: 'runner_disconnected',
  worker_error: 'runner_server_error',
  cancelled: 'client_cancelled',
}

/** Returns fal's error type for a failed job. A timeout before the start is `startup_timeout`. */
export function errorType({ error, status, startedAt }: Pick<JobRecord, 'error' | 'status' | 'startedAt'>): string {
  if (status === 'cancelled') return 'client_cancelled'
  if (!error) return 'internal_error'
  if (error.code === 'timeout' && startedAt === null) return 'startup_timeout'
  return errorTypes[error.code] ?? (error.type === 'server_error' ? 'internal_error' : 'bad_request')
}

type View = Record<string, unknown>

const missing = (id: string) => new Failure('not_found', `Request ${id.slice(0, 64)} was not found.`)

/**
 * Finds the job of a request id in the caller's organization. Throws Failure `not_found`, also for a request of another
 * organization, and `output_expired` for one that is no longer kept.
 */
export async function findRequest(requestId: string, viewer: Viewer, { jobs }: Owners<'jobs'>): Promise<JobRecord> {
  if (!requestId.startsWith('q_') || !isId(requestId)) throw missing(requestId)
  const { organizationId } = viewer.caller
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

/**
 * Returns the output of a request, with addresses of its files. Adds a large output to `embedded`; without it the
 * output is left out. Throws Failure `output_expired` when one of its files is no longer kept.
 */
export async function outputOf(
  job: JobRecord,
  { origin }: UrlReader,
  { files }: Owners<'files'>,
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

export const logView = ({ at, level, message }: LogLine) => ({
  timestamp: new Date(at).toISOString(),
  level,
  message,
  source: 'USER',
})

/** URLs of a request of the slug API. */
export const requestUrls = {
  response_url: string('Where to read the result.'),
  status_url: string('Where to read the status.'),
  cancel_url: string('Where to cancel the request (PUT or POST).'),
  stream_url: string('Where to follow the status as server-sent events.'),
}
