/**
 * All failure codes. The code decides the status, the type and whether to retry; the call site never does.
 * `retry` says whether the same call may succeed later; queues and client libraries depend on it.
 * Source: the error table of the API contract; the types are those of the OpenAI API.
 */
export const failures = {
  invalid_json: { status: 400, type: 'invalid_request_error', retry: false },
  missing_required_parameter: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_type: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_value: { status: 400, type: 'invalid_request_error', retry: false },
  string_above_max_length: { status: 400, type: 'invalid_request_error', retry: false },
  array_above_max_length: { status: 400, type: 'invalid_request_error', retry: false },
  unknown_parameter: { status: 400, type: 'invalid_request_error', retry: false },
  unsupported_parameter: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_graph: { status: 400, type: 'invalid_request_error', retry: false },
  unresolved_reference: { status: 400, type: 'execution_error', retry: false },
  unsupported_task: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_image: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_video: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_audio: { status: 400, type: 'invalid_request_error', retry: false },
  url_fetch_failed: { status: 400, type: 'invalid_request_error', retry: false },
  context_length_exceeded: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_scope: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_host: { status: 421, type: 'invalid_request_error', retry: false },
  missing_api_key: { status: 401, type: 'authentication_error', retry: false },
  invalid_api_key: { status: 401, type: 'authentication_error', retry: false },
  token_revoked: { status: 401, type: 'authentication_error', retry: false },
  token_expired: { status: 401, type: 'authentication_error', retry: false },
  insufficient_scope: { status: 403, type: 'permission_error', retry: false },
  model_not_allowed: { status: 403, type: 'permission_error', retry: false },
  region_restricted: { status: 403, type: 'permission_error', retry: false },
  organization_mismatch: { status: 403, type: 'permission_error', retry: false },
  outside_allowed_hours: { status: 403, type: 'permission_error', retry: false },
  storage_full: { status: 403, type: 'insufficient_quota', retry: false },
  role_not_allowed: { status: 403, type: 'permission_error', retry: false },
  organization_disabled: { status: 403, type: 'permission_error', retry: false },
  origin_not_allowed: { status: 403, type: 'permission_error', retry: false },
  invalid_signature: { status: 403, type: 'permission_error', retry: false },
  not_found: { status: 404, type: 'not_found_error', retry: false },
  model_not_found: { status: 404, type: 'not_found_error', retry: false },
  unknown_url: { status: 404, type: 'not_found_error', retry: false },
  method_not_allowed: { status: 405, type: 'invalid_request_error', retry: false },
  conflict: { status: 409, type: 'conflict_error', retry: false },
  version_conflict: { status: 409, type: 'conflict_error', retry: false },
  execution_already_finished: { status: 409, type: 'conflict_error', retry: false },
  batch_not_cancellable: { status: 409, type: 'conflict_error', retry: false },
  job_already_finished: { status: 409, type: 'conflict_error', retry: false },
  idempotency_key_in_use: { status: 409, type: 'idempotency_error', retry: true },
  output_expired: { status: 410, type: 'not_found_error', retry: false },
  payload_too_large: { status: 413, type: 'invalid_request_error', retry: false },
  unsupported_media_type: { status: 415, type: 'invalid_request_error', retry: false },
  idempotency_key_reused: { status: 422, type: 'idempotency_error', retry: false },
  rate_limit: { status: 429, type: 'rate_limit_error', retry: true },
  quota_exceeded: { status: 429, type: 'insufficient_quota', retry: false },
  queue_full: { status: 429, type: 'rate_limit_error', retry: true },
  cancelled: { status: 499, type: 'invalid_request_error', retry: false },
  internal_error: { status: 500, type: 'server_error', retry: false },
  worker_error: { status: 502, type: 'server_error', retry: true },
  model_warming_up: { status: 503, type: 'server_error', retry: true },
  no_capacity: { status: 503, type: 'server_error', retry: true },
  disk_full: { status: 503, type: 'server_error', retry: true },
  shutting_down: { status: 503, type: 'server_error', retry: true },
  timeout: { status: 504, type: 'timeout_error', retry: true },
  worker_crashed: { status: 502, type: 'server_error', retry: false },
} as const satisfies Record<string, { status: number; type: string; retry: boolean }>

export type FailureCode = keyof typeof failures

export interface FailureDetail<Code extends string = string> {
  path: string
  message: string
  code: Code
}

/** What is wrong with one field, in the form of FastAPI, which fal clients expect. */
export interface ValidationDetail {
  loc: (string | number)[]
  msg: string
  type: string
  ctx?: Record<string, unknown>
  input?: unknown
}

export interface FailureMore {
  /** The input with the error, as a JSON path: `messages[0].content`. */
  param?: string
  /** Milliseconds until a retry makes sense. */
  retryAfterMs?: number
  /** A retry cannot succeed until somebody changes this server, although the code is retryable in general. */
  final?: boolean
  /** Further members of the error body, for codes that carry facts: `required_scope`, `eta_seconds`, `reset_at`. */
  facts?: Record<string, string | number | boolean | null>
  /** One entry per wrong field, where more than one is wrong. */
  details?: FailureDetail[]
  /** The same in the form of FastAPI, also where only one field is wrong. */
  validation?: ValidationDetail[]
  /** The error message of an engine, for the log and operators. Never shown to callers. */
  engineText?: string | undefined
  /** Logged, never shown. */
  cause?: unknown
}

/** The only error class of this program. The message is a sentence for the caller: what happened, to what, what to do. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly code: FailureCode
  readonly param: string | undefined
  readonly retryAfterMs: number | undefined
  readonly final: boolean
  readonly facts: Record<string, string | number | boolean | null> | undefined
  readonly details: FailureDetail[] | undefined
  readonly validation: ValidationDetail[] | undefined
  readonly engineText: string | undefined

  constructor(code: FailureCode, message: string, more: FailureMore = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.code = code
    this.param = more.param
    this.retryAfterMs = more.retryAfterMs
    this.final = more.final ?? false
    this.facts = more.facts
    this.details = more.details
    this.validation = more.validation
    this.engineText = more.engineText
  }

  get status(): number {
    return failures[this.code].status
  }
  get type(): string {
    return failures[this.code].type
  }
  get retryable(): boolean {
    return failures[this.code].retry && !this.final
  }

  /** Turns any other error into `internal_error`: the log has all of it, the caller sees none of it. */
  static from(thrown: unknown): Failure {
    return thrown instanceof Failure
      ? thrown
      : new Failure(
          'internal_error',
          'Something went wrong inside infer. The log has the cause under this request id.',
          {
            cause: thrown,
          },
        )
  }
}

/**
 * Returns the milliseconds after which a client may retry a refused request: the expected time, but at least one second,
 * so that clients do not retry in a loop, and at most five minutes. Undefined without an expected time.
 */
export const retryAfter = (etaMs: number | null): number | undefined =>
  etaMs === null ? undefined : Math.min(300_000, Math.max(1_000, Math.ceil(etaMs)))
