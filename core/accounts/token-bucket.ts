/** The state of one limit after a request was checked. Without a limit, `limit` is 0 and every request is allowed. */
export interface Allowance {
  allowed: boolean
  limit: number
  remaining: number
  /** Milliseconds until the bucket is full again. */
  resetMs: number
  /** Milliseconds until the next request is allowed; 0 if this one was. */
  retryAfterMs: number
}

/** What a bucket held at a time of the monotonic clock, milliseconds. */
export interface Level {
  tokens: number
  at: number
}

/** What is in a token bucket that holds `perMinute` and refills evenly. Negative while a debt is repaid. */
export const refilled = (level: Level | undefined, perMinute: number, now: number): number =>
  level ? Math.min(perMinute, level.tokens + (Math.max(0, now - level.at) * perMinute) / 60_000) : perMinute

/**
 * Whether a bucket holds one more request. Sums of fractions miss whole numbers by rounding; a millionth of a request is
 * no reason to refuse one.
 */
export const isEnough = (tokens: number): boolean => tokens >= 1 - 1e-6

/** Describes a bucket that holds `tokens` after the check. */
export function allowanceOf(allowed: boolean, tokens: number, perMinute: number): Allowance {
  const perMs = perMinute / 60_000
  return {
    allowed,
    limit: perMinute,
    remaining: Math.max(0, Math.floor(tokens + 1e-6)),
    resetMs: Math.ceil((perMinute - tokens) / perMs),
    retryAfterMs: allowed ? 0 : Math.ceil((1 - tokens) / perMs - 1e-6),
  }
}

/** A token bucket that holds `perMinute` and refills evenly: the limit per minute also limits a burst. Pure. */
export function take(level: Level | undefined, perMinute: number, now: number): { level: Level; allowance: Allowance } {
  const tokens = refilled(level, perMinute, now)
  const allowed = isEnough(tokens)
  const remaining = allowed ? Math.max(0, tokens - 1) : tokens
  return { level: { tokens: remaining, at: now }, allowance: allowanceOf(allowed, remaining, perMinute) }
}

/** Of a bucket without a limit. */
export const unlimited: Allowance = { allowed: true, limit: 0, remaining: 0, resetMs: 0, retryAfterMs: 0 }
