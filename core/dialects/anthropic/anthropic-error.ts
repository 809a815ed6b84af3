import type { Failure } from '../../failure.ts'

/** The status that Anthropic's clients know as overload; they repeat such a request. */
const overloaded = 529

const types: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  410: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  503: 'overloaded_error',
}

/** Returns the HTTP status of a failure: 503 is Anthropic's 529. */
export const anthropicStatus = ({ status }: Failure): number => (status === 503 ? overloaded : status)

/** Returns the body of an error in Anthropic's form, with the code and the parameter besides. */
export function anthropicError(failure: Failure, requestId: string): object {
  const { status, code, message, param = null, facts } = failure
  const type =
    code === 'quota_exceeded'
      ? 'billing_error'
      : (types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'))
  return { type: 'error', error: { type, message, code, param, ...facts }, request_id: requestId }
}
