import type { Failure } from '../../core/failure.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { Call } from '../call.ts'
import { errorBody } from '../errors.ts'
import { detailOf, errorType } from '../slug/errors.ts'

/** An error as fal's clients read it. */
interface FalError {
  status: number
  body: object
  /** Flat. */
  headers: string[]
}

/** fal's statuses of what is no fault of the request, by its words for them. */
const statuses: Readonly<Record<string, number>> = {
  request_timeout: 504,
  startup_timeout: 504,
  runner_scheduling_failure: 503,
  runner_disconnected: 503,
  // Not 502, which its client sends again: for a request that runs at once that would be the work twice.
  runner_server_error: 500,
  internal_error: 500,
  client_cancelled: 499,
}

const headersOf = (type: string, retryable: boolean): string[] => [
  'x-fal-error-type',
  type,
  'x-fal-retryable',
  String(retryable),
]

/** fal's client takes a 504 with this for the caller's own patience, and does not send the request again. */
export const ownTimeout = ['x-fal-request-timeout-type', 'user']

/** A request that is refused. What is wrong with its body is 422 to fal, where the rest of this API says 400. */
export function falErrors(failure: Failure, call: Call): FalError {
  const own = errorBody(failure, call.id)
  const aboutBody = failure.param !== undefined || failure.validation !== undefined || failure.code === 'invalid_json'
  if (failure.status === 400 && aboutBody) {
    const detail = detailOf(failure)
    return {
      status: 422,
      body: {
        detail: typeof detail === 'string' ? [{ loc: ['body'], msg: detail, type: failure.code }] : detail,
        message: failure.message,
        ...own,
      },
      headers: ['x-fal-retryable', 'false'],
    }
  }
  const { code, message, type, retryable } = failure
  const word = errorType({ status: 'failed', startedAt: null, error: { code, message, type, retryable, attempt: 0 } })
  return {
    status: failure.status,
    body: { detail: message, message, error_type: word, ...own },
    headers: headersOf(word, retryable),
  }
}

/** Why a job that has ended has no result, as the answer to whoever asks for it. */
export function falFailure(job: JobRecord): FalError {
  const word = errorType(job)
  const message = job.error?.message ?? 'The request was cancelled.'
  if (word === 'bad_request')
    return {
      status: 422,
      body: { detail: [{ loc: ['body'], msg: message, type: job.error?.code ?? 'value_error' }], message },
      headers: ['x-fal-retryable', 'false'],
    }
  return {
    status: statuses[word] ?? 500,
    body: { detail: message, message, error_type: word },
    headers: [
      ...headersOf(word, job.error?.retryable ?? false),
      ...(word === 'startup_timeout' && job.startBy !== null ? ownTimeout : []),
    ],
  }
}
