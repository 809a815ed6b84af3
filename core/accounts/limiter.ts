import type { Bucket } from './plan.ts'

/** The result of one request's check. Without a limit, `limit` is 0 and every request is allowed. */
export interface Allowance {
  allowed: boolean
  limit: number
  remaining: number
  /** Milliseconds until the bucket is full again. */
  resetMs: number
  /** Milliseconds until the next request is allowed; 0 if this one was. */
  retryAfterMs: number
}

interface Level {
  tokens: number
  at: number
}

/** A token bucket that holds `perMinute` and refills evenly: the limit per minute also limits a burst. Pure. */
export function take(level: Level | undefined, perMinute: number, now: number): { level: Level; allowance: Allowance } {
  const perMs = perMinute / 60_000
  const tokens = Math.min(perMinute, level ? level.tokens + Math.max(0, now - level.at) * perMs : perMinute)
  // Sums of fractions miss whole numbers by rounding; a millionth of a request is no reason to refuse one.
  const allowed = tokens >= 1 - 1e-6
  const remaining = allowed ? Math.max(0, tokens - 1) : tokens
  return {
    level: { tokens: remaining, at: now },
    allowance: {
      allowed,
      limit: perMinute,
      remaining: Math.floor(remaining),
      resetMs: Math.ceil((perMinute - remaining) / perMs),
      retryAfterMs: allowed ? 0 : Math.ceil((1 - remaining) / perMs - 1e-6),
    },
  }
}

const unlimited: Allowance = { allowed: true, limit: 0, remaining: 0, resetMs: 0, retryAfterMs: 0 }

/**
 * Rate limits by organization and bucket, in memory, on the monotonic clock. Holds one small entry for every
 * organization seen in the last minutes; full buckets are removed, so memory is bounded.
 */
export function openLimiter(now: () => number = () => performance.now()) {
  const levels: Record<Bucket, Map<string, Level>> = { api: new Map(), jobs: new Map() }
  let lastSweep = now()

  function sweep(at: number) {
    lastSweep = at
    for (const each of Object.values(levels))
      for (const [id, level] of each) if (at - level.at > 60_000) each.delete(id)
  }

  return {
    take(organizationId: string, bucket: Bucket, perMinute: number): Allowance {
      if (perMinute === 0) return unlimited
      const at = now()
      if (at - lastSweep > 60_000) sweep(at)
      const { level, allowance } = take(levels[bucket].get(organizationId), perMinute, at)
      levels[bucket].set(organizationId, level)
      return allowance
    },
  }
}
export type Limiter = ReturnType<typeof openLimiter>

/**
 * Counts wrong credentials by client address, so that guessing is slowed down while valid tokens are never delayed.
 * Bounded: beyond `maxAddresses`, the oldest is removed.
 */
export function openWrongTokenLimiter(
  perMinute: number,
  now: () => number = () => performance.now(),
  maxAddresses = 10_000,
) {
  const levels = new Map<string, Level>()
  return {
    /** Milliseconds to wait if this address has too many failures, else 0. Does not count. */
    blockedFor(address: string): number {
      const level = levels.get(address)
      if (!level) return 0
      const tokens = Math.min(perMinute, level.tokens + ((now() - level.at) * perMinute) / 60_000)
      return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 60_000) / perMinute)
    },
    failed(address: string): void {
      const { level } = take(levels.get(address), perMinute, now())
      levels.delete(address)
      levels.set(address, level)
      if (levels.size > maxAddresses) levels.delete(levels.keys().next().value!)
    },
  }
}
