/** When the next start is tried after failed ones, and when waiting requests are refused. */
export interface BackoffRules {
  /** Milliseconds before the second attempt. The delay doubles with each further attempt. */
  firstMs: number
  maxMs: number
  /** After this many failures in a row the circuit opens: requests are refused at once instead of waiting. */
  openAfter: number
}

/** The failures of one model's engine since it last completed a request. */
export interface StartFailures {
  count: number
  /** Earliest time of the next attempt, on the caller's clock. */
  retryAt: number
  /** Why the last attempt failed, as a sentence. */
  reason: string
}

export function addFailure(
  before: StartFailures | null,
  reason: string,
  now: number,
  rules: BackoffRules,
): StartFailures {
  const count = (before?.count ?? 0) + 1
  const delayMs = Math.min(rules.maxMs, rules.firstMs * 2 ** Math.min(count - 1, 30))
  return { count, retryAt: now + delayMs, reason }
}

/**
 * `closed`: start now. `waiting`: start at `retryAt`; requests may wait until then. `open`: start at `retryAt`;
 * requests are refused until then. From `retryAt` on the circuit is closed for one attempt, and its result
 * decides.
 */
export function circuitState(
  failures: StartFailures | null,
  now: number,
  rules: BackoffRules,
): 'closed' | 'waiting' | 'open' {
  if (!failures || now >= failures.retryAt) return 'closed'
  return failures.count >= rules.openAfter ? 'open' : 'waiting'
}
