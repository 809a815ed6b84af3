const permanent = (status: number, type: string) => ({ status, type, retry: false })
const retryable = (status: number, type: string) => ({ status, type, retry: true })
const badRequest = permanent(400, 'invalid_request_error')
const unauthenticated = permanent(401, 'authentication_error')
const forbidden = permanent(403, 'permission_error')
const notFound = permanent(404, 'not_found_error')
const inConflict = permanent(409, 'conflict_error')
const unavailable = retryable(503, 'server_error')

/**
 * All failure codes. The code decides the status, the type and whether to retry; the call site never does.
 * `retry` says whether the same call may succeed later; queues and client libraries depend on it.
 * Source: the error table of the API contract; the types are those of the OpenAI API.
 */
export const failures = {
  invalid_json: badRequest,
  missing_required_parameter: badRequest,
  invalid_type: badRequest,
  invalid_value: badRequest,
  string_above_max_length: badRequest,
  array_above_max_length: badRequest,
  unknown_parameter: badRequest,
  unsupported_parameter: badRequest,
  invalid_graph: badRequest,
  unresolved_reference: permanent(400, 'execution_error'),
  unsupported_task: badRequest,
  invalid_image: badRequest,
  invalid_video: badRequest,
  invalid_audio: badRequest,
  url_fetch_failed: badRequest,
  context_length_exceeded: badRequest,
  previous_response_not_found: badRequest,
  invalid_scope: badRequest,
  invalid_host: permanent(421, 'invalid_request_error'),
  missing_api_key: unauthenticated,
  invalid_api_key: unauthenticated,
  token_revoked: unauthenticated,
  token_expired: unauthenticated,
  insufficient_scope: forbidden,
  model_not_allowed: forbidden,
  region_restricted: forbidden,
  organization_mismatch: forbidden,
  outside_allowed_hours: forbidden,
  storage_full: permanent(403, 'insufficient_quota'),
  role_not_allowed: forbidden,
  organization_disabled: forbidden,
  origin_not_allowed: forbidden,
  invalid_signature: forbidden,
  not_found: notFound,
  model_not_found: notFound,
  unknown_url: notFound,
  method_not_allowed: permanent(405, 'invalid_request_error'),
  conflict: inConflict,
  version_conflict: inConflict,
  execution_already_finished: inConflict,
  batch_not_cancellable: inConflict,
  job_already_finished: inConflict,
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
  model_load_failed: permanent(502, 'server_error'),
  model_warming_up: unavailable,
  no_capacity: unavailable,
  disk_full: unavailable,
  shutting_down: unavailable,
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
  param?: string | undefined
  /** Milliseconds until a retry makes sense. */
  retryAfterMs?: number | undefined
  /** The engine itself named `retryAfterMs`: it is called no earlier, and callers get it as it is. */
  askedByEngine?: boolean
  /** Milliseconds until another attempt that the caller has chosen, in place of the usual back-off. */
  backOffMs?: number | undefined
  /** No engine has got the request, and the one that should have cannot be reached: the attempt does not count. */
  unsent?: boolean
  /** A retry cannot succeed until somebody changes this server, although the code is retryable in general. */
  final?: boolean
  /** Further members of the error body, for codes that carry facts: `required_scope`, `eta_seconds`, `reset_at`. */
  facts?: Record<string, string | number | boolean | null> | undefined
  /** One entry per wrong field, where more than one is wrong. */
  details?: FailureDetail[] | undefined
  /** The same in the form of FastAPI, also where only one field is wrong. */
  validation?: ValidationDetail[] | undefined
  /** The error message of an engine, for the log and operators. Never shown to callers. */
  engineText?: string | undefined
  /** Logged, never shown. */
  cause?: unknown
}

export type FailureChange = FailureMore & { code?: FailureCode; message?: string }

/** The only error class of this program. The message is a sentence for the caller: what happened, to what, what to do. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly code: FailureCode
  readonly param: string | undefined
  readonly retryAfterMs: number | undefined
  readonly askedByEngine: boolean
  readonly backOffMs: number | undefined
  readonly unsent: boolean
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
    this.askedByEngine = more.askedByEngine ?? false
    this.backOffMs = more.backOffMs
    this.unsent = more.unsent ?? false
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

  /** Returns the same failure with these changes. */
  with({ code = this.code, message = this.message, ...changes }: FailureChange): Failure {
    return new Failure(code, message, Object.assign({ cause: this.cause }, this, changes))
  }

  /** Turns any other error into `internal_error`: the log has all of it, the caller sees none of it. */
  static from(thrown: unknown): Failure {
    return thrown instanceof Failure
      ? thrown
      : new Failure(
          'internal_error',
          'Something went wrong inside infer. The log has the cause under this request id.',
          { cause: thrown },
        )
  }
}

/**
 * Returns the milliseconds after which a client may retry a refused request: the expected time, but at least one second,
 * so that clients do not retry in a loop, and at most an hour. Undefined without an expected time.
 */
export const retryAfter = (etaMs: number | null): number | undefined =>
  etaMs === null ? undefined : Math.min(3_600_000, Math.max(1_000, Math.ceil(etaMs)))

/** The failure of a wrong field, header, option or query parameter, which `param` names. */
export const invalid = (param: string, message: string, code: FailureCode = 'invalid_value'): Failure =>
  new Failure(code, message, { param })

/** The failure of a wrong value that is no field of a request, such as a file, a setting or an argument. */
export const invalidValue = (message: string, more?: FailureMore): Failure =>
  new Failure('invalid_value', message, more)

/** The failure of a request that the present state of its object does not allow. */
export const conflict = (message: string): Failure => new Failure('conflict', message)
