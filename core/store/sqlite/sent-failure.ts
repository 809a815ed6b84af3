import { Failure, type FailureCode } from '../../failure.ts'

/** A Failure as it is sent between threads. */
export interface SentFailure {
  code: FailureCode
  message: string
  retryAfterMs?: number
  param?: string
  /** Further members of the error body, such as the limit that was reached. */
  facts?: Failure['facts']
  /** The stack of the original error, for the receiver's log. */
  cause?: string
}

/** Converts an error for another thread; what is not a Failure becomes `internal_error` with its stack as the cause. */
export function sendable(thrown: unknown): SentFailure {
  const failure = Failure.from(thrown)
  const { code, message, retryAfterMs, param, facts, cause } = failure
  return {
    code,
    message,
    retryAfterMs,
    param,
    facts,
    cause: cause instanceof Error ? (cause.stack ?? cause.message) : undefined,
  }
}

export const received = ({ code, message, retryAfterMs, param, facts, cause }: SentFailure): Failure =>
  new Failure(code, message, { retryAfterMs, param, facts, cause })

/** How long a caller should wait when the disk is full, milliseconds. */
const fullRetryMs = 5000

export const diskFull: SentFailure = {
  code: 'disk_full',
  message:
    'The disk of this server is full: it accepts no new work until there is space. Running work continues. Retry later.',
  retryAfterMs: fullRetryMs,
}
