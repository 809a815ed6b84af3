import { Failure } from '../../failure.ts'

/** A Failure as it is sent between threads. */
export interface SentFailure
  extends Pick<Failure, 'code' | 'message'>,
    Partial<Pick<Failure, 'retryAfterMs' | 'param' | 'facts' | 'final'>> {
  /** The stack of the original error, for the receiver's log. */
  cause?: string
}

/** Converts an error for another thread; what is not a Failure becomes `internal_error` with its stack as the cause. */
export function sendable(thrown: unknown): SentFailure {
  const failure = Failure.from(thrown)
  const { code, message, retryAfterMs, param, facts, final, cause } = failure
  const stack = cause instanceof Error ? (cause.stack ?? cause.message) : undefined
  return { code, message, retryAfterMs, param, facts, final, cause: stack }
}

export const received = ({ code, message, retryAfterMs, param, facts, final = false, cause }: SentFailure): Failure =>
  new Failure(code, message, { retryAfterMs, param, facts, final, cause })

/** How long a caller should wait when the disk is full, milliseconds. */
const fullRetryMs = 5000

export const diskFull: SentFailure = {
  code: 'disk_full',
  message:
    'The disk of this server is full: it accepts no new work until there is space. Running work continues. Retry later.',
  retryAfterMs: fullRetryMs,
}

/** The failure of whatever arrives while the server ends. */
export const shuttingDown = (): Failure =>
  new Failure('shutting_down', 'This server is shutting down. Retry later.', { retryAfterMs: 5000 })
