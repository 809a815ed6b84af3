import type { Failure } from '../../../core/failure.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { errorBody } from '../../http/request/errors.ts'
import { routeOf } from '../../http/request/route.ts'
import { detailOf, errorType } from '../../views/generation-request.ts'

/** An error in the format of fal's clients. */
interface FalError {
  status: number
  body: object
  /** Names and values, flat. */
  headers: string[]
}

/** fal's HTTP statuses of failures that the request did not cause, by fal's error type. */
const statuses: Readonly<Record<string, number>> = {
  request_timeout: 504,
  startup_timeout: 504,
  runner_scheduling_failure: 503,
  runner_disconnected: 503,
  // Not 502: fal's client retries that, and would repeat the work of a direct call.
  runner_server_error: 500,
  internal_error: 500,
  client_cancelled: 499,
}

const headersOf = (type: string, retryable: boolean) => ['x-fal-error-type', type, 'x-fal-retryable', String(retryable)]

/** With this header fal's client takes a 504 for the caller's own timeout and does not retry the request. */
export const ownTimeout = ['x-fal-request-timeout-type', 'user']

/**
 * Returns the error of a refused request. Errors in the body have fal's status 422; elsewhere in this API it is 400.
 */
export function falErrors(failure: Failure, exchange: { id: string }): FalError {
  const common = errorBody(failure, exchange.id)
  const aboutBody = failure.param !== undefined || failure.validation !== undefined || failure.code === 'invalid_json'
  if (failure.status === 400 && aboutBody) {
    const detail = detailOf(failure)
    return {
      status: 422,
      body: {
        detail: typeof detail === 'string' ? [{ loc: ['body'], msg: detail, type: failure.code }] : detail,
        message: failure.message,
        ...common,
      },
      headers: ['x-fal-retryable', 'false'],
    }
  }
  const { code, message, type, retryable } = failure
  const falType = errorType({
    status: 'failed',
    startedAt: null,
    error: { code, message, type, retryable, attempt: 0 },
  })
  return {
    status: failure.status,
    body: { detail: message, message, error_type: falType, ...common },
    headers: headersOf(falType, retryable),
  }
}

/** Returns the error of a job that ended without a result. */
export function falFailure(job: JobRecord): FalError {
  const falType = errorType(job)
  const message = job.error?.message ?? 'The request was cancelled.'
  if (falType === 'bad_request')
    return {
      status: 422,
      body: { detail: [{ loc: ['body'], msg: message, type: job.error?.code ?? 'value_error' }], message },
      headers: ['x-fal-retryable', 'false'],
    }
  return {
    status: statuses[falType] ?? 500,
    body: { detail: message, message, error_type: falType },
    headers: [
      ...headersOf(falType, job.error?.retryable ?? false),
      ...(falType === 'startup_timeout' && job.startBy !== null ? ownTimeout : []),
    ],
  }
}

/** Makes a route of the fal-compatible API. */
export const falRoute = routeOf({ tag: 'fal', errors: falErrors })
