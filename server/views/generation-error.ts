import type { Failure, FailureCode, ValidationDetail } from '../../core/failure.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { errorBody } from '../http/request/errors.ts'

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
