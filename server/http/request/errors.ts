import type { ServerResponse } from 'node:http'
import { Failure, type FailureCode } from '../../../core/failure.ts'
import { commonHeaders } from '../connection/head.ts'
import type { RouteErrors } from './endpoint.ts'

/** Error codes that belong together, for the `errorCodes` of routes. */
export const errorGroups = {
  /** For requests whose work is stored as a job. */
  submit: [
    'model_not_found',
    'unsupported_task',
    'unsupported_parameter',
    'model_not_allowed',
    'region_restricted',
    'conflict',
    'idempotency_key_reused',
    'queue_full',
    'storage_full',
    'disk_full',
    'no_capacity',
  ],
  /** For requests whose caller waits for the result. */
  wait: [
    'context_length_exceeded',
    'idempotency_key_in_use',
    'queue_full',
    'cancelled',
    'worker_error',
    'worker_crashed',
    'model_load_failed',
    'model_warming_up',
    'no_capacity',
    'timeout',
  ],
  /** For requests with media. */
  media: [
    'invalid_image',
    'invalid_video',
    'invalid_audio',
    'url_fetch_failed',
    'not_found',
    'output_expired',
    'storage_full',
    'disk_full',
  ],
  /** For signed URLs. */
  signed: ['invalid_signature', 'invalid_value'],
  /** For requests whose answer has a secret, and that may have an `Idempotency-Key`. */
  keyed: ['conflict', 'idempotency_key_in_use', 'idempotency_key_reused'],
  /** For requests that name a model. */
  model: ['model_not_found', 'unsupported_task', 'model_not_allowed'],
  /** For commands on the machine, which its owner alone may give. */
  command: ['organization_mismatch', 'worker_error', 'timeout'],
  /** For requests that store a file. */
  upload: ['conflict', 'payload_too_large', 'storage_full', 'rate_limit', 'disk_full'],
} as const satisfies Record<string, readonly FailureCode[]>

/** Returns what was found. Throws Failure `not_found`, whose message begins with this noun, if nothing was. */
export function found<Value>(value: Value, noun: string, id: string): Exclude<Value, undefined | null | false> {
  if (value) return value as Exclude<Value, undefined | null | false>
  throw new Failure('not_found', `${noun} ${id.slice(0, 64)} was not found.`)
}

/** Returns `x-should-retry` if the status alone would mislead the official clients about retrying. */
const shouldRetry = (failure: Failure): 'true' | 'false' | undefined => {
  if (failure.final) return 'false'
  if (failure.status === 503 || failure.code === 'idempotency_key_in_use') return 'true'
  if (
    failure.status === 409 ||
    failure.code === 'quota_exceeded' ||
    failure.code === 'timeout' ||
    failure.code === 'worker_crashed' ||
    failure.code === 'model_load_failed'
  )
    return 'false'
  return undefined
}

/** Capacity rarely changes sooner, and OpenAI's clients ignore more than a minute. */
const minCapacityMs = 10_000
const maxCapacityMs = 30_000

const defaultRetryMs: Partial<Record<Failure['code'], number>> = {
  model_warming_up: 30_000,
  no_capacity: minCapacityMs,
  disk_full: 10_000,
  shutting_down: 5_000,
  queue_full: 5_000,
  rate_limit: 1_000,
}

/** Returns the milliseconds to wait before a retry; undefined if waiting does not help. */
function retryAfterMs(failure: Failure) {
  if (failure.final) return undefined
  const ms = failure.retryAfterMs ?? defaultRetryMs[failure.code]
  if (failure.code !== 'no_capacity' || failure.askedByEngine || ms === undefined) return ms
  return Math.min(maxCapacityMs, Math.max(minCapacityMs, ms))
}

/** Returns the body of an error, in the common format; OpenAI's four members first. */
export function errorBody(failure: Failure, requestId: string): { error: Record<string, unknown> } {
  const wait = retryAfterMs(failure)
  return {
    error: {
      code: failure.code,
      message: failure.message,
      type: failure.type,
      param: failure.param ?? null,
      request_id: requestId,
      ...(wait === undefined ? {} : { retry_after: Math.max(1, Math.ceil(wait / 1000)) }),
      ...(failure.details ? { details: failure.details } : {}),
      ...failure.facts,
    },
  }
}

/** Returns the response headers of a failure, flat. */
export function errorHeaders(failure: Failure): string[] {
  const headers: string[] = []
  const wait = retryAfterMs(failure)
  if (wait !== undefined && failure.retryable)
    headers.push(
      'retry-after',
      String(Math.max(1, Math.ceil(wait / 1000))),
      'retry-after-ms',
      String(Math.max(1, Math.ceil(wait))),
    )
  const retry = shouldRetry(failure)
  if (retry) headers.push('x-should-retry', retry)
  if (failure.status === 401) headers.push('www-authenticate', 'Bearer')
  if (failure.code === 'shutting_down') headers.push('connection', 'close')
  return headers
}

/** The common error format. */
const commonErrors: RouteErrors = (failure, { id }) => ({ status: failure.status, body: errorBody(failure, id) })

/** Returns the answer to a failed request, in the form of `errors`. `headers`: names and values, flat. */
export function errorAnswer(failure: Failure, requestId: string, errors: RouteErrors = commonErrors) {
  const { status, body, headers = [] } = errors(failure, { id: requestId })
  return { status, body: JSON.stringify(body), headers: [...errorHeaders(failure), ...headers] }
}

/** Writes an error where no `ClientExchange` exists yet: before routing, or before the server is ready. */
export function refuse(res: ServerResponse, failure: Failure, requestId: string, errors?: RouteErrors): void {
  if (res.headersSent || res.destroyed) return
  const { status, body, headers } = errorAnswer(failure, requestId, errors)
  res.writeHead(status, [
    'content-type',
    'application/json',
    'content-length',
    String(Buffer.byteLength(body)),
    ...commonHeaders(res.req, requestId),
    ...headers,
  ])
  res.end(body)
}

/**
 * Returns the last event of an event stream whose token was revoked, expired or lost the scope. All 401s have one code:
 * the reader has to do the same for each, and the message says what happened.
 */
export function accessEndEvent(failure: Failure, requestId: string): string {
  const shown = failure.status === 401 ? new Failure('invalid_api_key', failure.message) : failure
  return `event: error\n${errorFrame(shown, requestId)}`
}

/** Returns the last frame of a stream that fails after its head was sent. No `[DONE]` follows. */
export const errorFrame = (failure: Failure, requestId: string): string =>
  `data: ${JSON.stringify(errorBody(failure, requestId))}\n\n`
