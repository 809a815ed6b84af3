/** A failure of the API, or of the way to it, as a sentence that a person can read. */
export class ApiFailure extends Error {
  override name = 'ApiFailure'
  /** HTTP status; 0 if there was no answer. */
  readonly status: number
  readonly code: string
  /** The field that the failure is about. */
  readonly param: string | undefined
  /** Seconds after which to try again. */
  readonly retryAfter: number | undefined

  constructor(message: string, facts: { status: number; code: string; param?: string; retryAfter?: number }) {
    super(message)
    this.status = facts.status
    this.code = facts.code
    this.param = facts.param
    this.retryAfter = facts.retryAfter
  }
}

/** Returns the failure that an error answer says. */
export function failureOf(response: Response, body: unknown): ApiFailure {
  const { error } = (body ?? {}) as { error?: { message?: string; code?: string; param?: string | null } }
  const seconds = Number(response.headers.get('retry-after'))
  return new ApiFailure(error?.message ?? `The server answered ${response.status} without an explanation.`, {
    status: response.status,
    code: error?.code ?? 'unknown',
    ...(error?.param ? { param: error.param } : {}),
    ...(seconds > 0 ? { retryAfter: seconds } : {}),
  })
}

/** Returns the failure of a request that got no answer. */
export const unreachable = (): ApiFailure =>
  new ApiFailure('The server does not answer. Check that it runs and that this machine can reach it.', {
    status: 0,
    code: 'unreachable',
  })
