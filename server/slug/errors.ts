import type { Failure, FailureCode, ValidationDetail } from '../../core/failure.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { Call } from '../call.ts'
import { errorBody } from '../errors.ts'

/** What is wrong with which field, where it is about one, as FastAPI says it; otherwise a sentence. */
export function detailOf({ validation, param, message, code }: Failure): string | ValidationDetail[] {
  if (validation) return validation
  if (param === undefined) return message
  // Headers are called by names that begin with a capital; the fields of bodies are not.
  return [{ loc: [/^[A-Z]/.test(param) ? 'header' : 'body', ...param.split('.')], msg: message, type: code }]
}

/** The shape of all errors, with the members beside it that fal's clients print. */
export const slugErrorBody = (failure: Failure, requestId: string): object => ({
  ...errorBody(failure, requestId),
  message: failure.message,
  detail: detailOf(failure),
})

export const slugErrors = (failure: Failure, call: Call): { status: number; body: object } => ({
  status: failure.status,
  body: slugErrorBody(failure, call.id),
})

const errorTypes: Partial<Record<FailureCode, string>> = {
  timeout: 'request_timeout',
  model_warming_up: 'startup_timeout',
  no_capacity: 'runner_scheduling_failure',
  worker_crashed: 'runner_disconnected',
  worker_error: 'runner_server_error',
  cancelled: 'client_cancelled',
}

/** fal's word for why a job has failed. One that never began failed by waiting for its start. */
export function errorType({ error, status, startedAt }: Pick<JobRecord, 'error' | 'status' | 'startedAt'>): string {
  if (status === 'cancelled') return 'client_cancelled'
  if (!error) return 'internal_error'
  if (error.code === 'timeout' && startedAt === null) return 'startup_timeout'
  return errorTypes[error.code] ?? (error.type === 'server_error' ? 'internal_error' : 'bad_request')
}
