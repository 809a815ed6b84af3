/** How starts that fail are slowed down, and when they are given up for a while. */
export interface BackoffRules {
  /** Milliseconds before the second attempt; each further one waits twice as long. */
  firstMs: number
  maxMs: number
  /** After this many failures without a success, callers are told at once instead of being kept waiting. */
  openAfter: number
}

export const defaultBackoff: BackoffRules = { firstMs: 1_000, maxMs: 300_000, openAfter: 5 }

/** The failures of one model's engine since it last did something useful. */
export interface Failures {
  count: number
  /** When the next attempt may be made, on the caller's clock. */
  retryAt: number
  /** Why the last one failed, as a sentence. */
  reason: string
}

/** The failures after one more. */
export function failedAgain(before: Failures | null, reason: string, now: number, rules: BackoffRules): Failures {
  const count = (before?.count ?? 0) + 1
  const pause = Math.min(rules.maxMs, rules.firstMs * 2 ** Math.min(count - 1, 30))
  return { count, retryAt: now + pause, reason }
}

/**
 * `closed`: start. `waiting`: start at `retryAt`, until then callers may wait. `open`: the same, but callers are told
 * at once. Once `retryAt` has come, one attempt is made whichever it was, and it decides.
 */
export function circuit(failures: Failures | null, now: number, rules: BackoffRules): 'closed' | 'waiting' | 'open' {
  if (!failures || now >= failures.retryAt) return 'closed'
  return failures.count >= rules.openAfter ? 'open' : 'waiting'
}
