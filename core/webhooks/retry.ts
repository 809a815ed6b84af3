import { parseRetryAfter } from '../retry-after.ts'

/** What came back from one attempt. */
export type AttemptReply =
  | { statusCode: number; retryAfter: string | undefined; body: string; durationMs: number }
  | { statusCode: null; why: string; durationMs: number }

/** What follows from an attempt. `error` is a sentence for the owner of the endpoint. */
export type RetryDecision =
  | { outcome: 'delivered' }
  | { outcome: 'retry'; nextAt: number; error: string }
  | { outcome: 'dead'; error: string; gone: boolean }

/** Delays are drawn within this fraction of their length, so that many messages are not repeated at one time. */
const jitter = 0.2

/**
 * Decides what follows from an attempt; `attempts` counts it, `delays` are milliseconds, `random` is 0 to 1. Only 2xx
 * is a success; 410 means that the URL no longer exists. `Retry-After` can make a delay longer, but not shorter: an
 * endpoint that fails for an hour must not use up its attempts in a minute.
 */
export function decide(
  reply: AttemptReply,
  { attempts, delays, now, random }: { attempts: number; delays: readonly number[]; now: number; random: number },
): RetryDecision {
  const { statusCode } = reply
  if (statusCode !== null && statusCode >= 200 && statusCode < 300) return { outcome: 'delivered' }
  if (statusCode === 410)
    return { outcome: 'dead', error: 'The URL answered 410, which means that it no longer exists.', gone: true }
  const error = statusCode === null ? reply.why : `The URL answered ${statusCode}${redirectNote(statusCode)}.`
  const delay = delays[attempts - 1]
  if (delay === undefined) return { outcome: 'dead', error, gone: false }
  const drawn = delay * (1 + jitter * (2 * random - 1))
  const requested = statusCode === null ? 0 : (parseRetryAfter(reply.retryAfter, now) ?? 0)
  return { outcome: 'retry', nextAt: now + Math.round(Math.max(drawn, requested)), error }
}

const redirectNote = (status: number): string =>
  status >= 300 && status < 400 ? ', and redirects are not followed: register the URL to which it leads' : ''
