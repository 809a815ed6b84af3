const permanent = (status: number, type: string) => ({ status, type, retry: false })
const retryable = (status: number, type: string) => ({ status, type, retry: true })

/**
 * All failure codes. The code decides the status, the type and whether to retry; the call site never does.
 * `retry` says whether the same call may succeed later; queues and client libraries depend on it.
 * Source: the error table of the API contract; the types are those of the OpenAI API.
 */
export const failures = {
  invalid_json: permanent(400, 'invalid_request_error'),
  missing_required_parameter: permanent(400, 'invalid_request_error'),
  invalid_type: permanent(400, 'invalid_request_error'),
  invalid_value: permanent(400, 'invalid_request_error'),
  string_above_max_length: permanent(400, 'invalid_request_error'),
  array_above_max_length: permanent(400, 'invalid_request_error'),
  unknown_parameter: permanent(400, 'invalid_request_error'),
  unsupported_parameter: permanent(400, 'invalid_request_error'),
  invalid_graph: permanent(400, 'invalid_request_error'),
  unresolved_reference: permanent(400, 'execution_error'),
  unsupported_task: permanent(400, 'invalid_request_error'),
  invalid_image: permanent(400, 'invalid_request_error'),
  invalid_video: permanent(400, 'invalid_request_error'),
  invalid_audio: permanent(400, 'invalid_request_error'),
  url_fetch_failed: permanent(400, 'invalid_request_error'),
  context_length_exceeded: permanent(400, 'invalid_request_error'),
  invalid_scope: permanent(400, 'invalid_request_error'),
  invalid_host: permanent(421, 'invalid_request_error'),
  missing_api_key: permanent(401, 'authentication_error'),
  invalid_api_key: permanent(401, 'authentication_error'),
  token_revoked: permanent(401, 'authentication_error'),
  token_expired: permanent(401, 'authentication_error'),
  insufficient_scope: permanent(403, 'permission_error'),
  model_not_allowed: permanent(403, 'permission_error'),
  region_restricted: permanent(403, 'permission_error'),
  organization_mismatch: permanent(403, 'permission_error'),
  outside_allowed_hours: permanent(403, 'permission_error'),
  storage_full: permanent(403, 'insufficient_quota'),
  role_not_allowed: permanent(403, 'permission_error'),
  organization_disabled: permanent(403, 'permission_error'),
  origin_not_allowed: permanent(403, 'permission_error'),
  invalid_signature: permanent(403, 'permission_error'),
  not_found: permanent(404, 'not_found_error'),
  model_not_found: permanent(404, 'not_found_error'),
  unknown_url: permanent(404, 'not_found_error'),
  method_not_allowed: permanent(405, 'invalid_request_error'),
  conflict: permanent(409, 'conflict_error'),
  version_conflict: permanent(409, 'conflict_error'),
  execution_already_finished: permanent(409, 'conflict_error'),
  batch_not_cancellable: permanent(409, 'conflict_error'),
  job_already_finished: permanent(409, 'conflict_error'),
  idempotency_key_in_use: retryable(409, 'idempotency_error'),
  output_expired: permanent(410, 'not_found_error'),
  payload_too_large: permanent(413, 'invalid_request_error'),
  unsupported_media_type: permanent(415, 'invalid_request_error'),
  idempotency_key_reused: permanent(422, 'idempotency_error'),
  rate_limit: retryable(429, 'rate_limit_error'),
  quota_exceeded: permanent(429, 'insufficient_quota'),
  queue_full: retryable(429, 'rate_limit_error'),
  cancelled: permanent(499, 'invalid_request_error'),
  internal_error: permanent(500, 'server_error'),
  worker_error: retryable(502, 'server_error'),
  model_warming_up: retryable(503, 'server_error'),
  no_capacity: retryable(503, 'server_error'),
  disk_full: retryable(503, 'server_error'),
  shutting_down: retryable(503, 'server_error'),
  timeout: retryable(504, 'timeout_error'),
  worker_crashed: permanent(502, 'server_error'),
}

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

/** The failure of a wrong field, header, option or query parameter, which `param` names. */
export const invalid = (param: string, message: string, code: FailureCode = 'invalid_value'): Failure =>
  new Failure(code, message, { param })
