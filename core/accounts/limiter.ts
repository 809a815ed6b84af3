import type { Bucket } from './plan.ts'

/** What one request found in its bucket. Absent limits give `limit: 0` and are always allowed. */
export interface Allowance {
  allowed: boolean
  limit: number
  remaining: number
  /** Milliseconds until the bucket is full again. */
  resetMs: number
  /** Milliseconds until the next request is allowed; 0 when this one was. */
  retryAfterMs: number
}

interface Level {
  tokens: number
  at: number
}

/** A token bucket that holds `perMinute` and refills evenly: the minute's figure also bounds a burst. Pure. */
export function take(level: Level | undefined, perMinute: number, now: number): { level: Level; allowance: Allowance } {
  const perMs = perMinute / 60_000
  const tokens = Math.min(perMinute, level ? level.tokens + Math.max(0, now - level.at) * perMs : perMinute)
  // Sums of fractions miss whole numbers by a hair; a millionth of a request is not a reason to refuse one.
  const allowed = tokens >= 1 - 1e-6
  const left = allowed ? Math.max(0, tokens - 1) : tokens
  return {
    level: { tokens: left, at: now },
    allowance: {
      allowed,
      limit: perMinute,
      remaining: Math.floor(left),
      resetMs: Math.ceil((perMinute - left) / perMs),
      retryAfterMs: allowed ? 0 : Math.ceil((1 - left) / perMs - 1e-6),
    },
  }
}

const unlimited: Allowance = { allowed: true, limit: 0, remaining: 0, resetMs: 0, retryAfterMs: 0 }

/**
 * Rate limits by organization and bucket, in memory, on the monotonic clock. Holds one small entry for every
 * organization seen in the last minutes; full buckets are forgotten, so it cannot grow without bound.
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
 * Counts wrong credentials by client address, so that guessing is slowed while right tokens are never delayed.
 * Bounded: past `most` addresses the oldest is forgotten.
 */
export function openWrongTokenLimiter(perMinute: number, now: () => number = () => performance.now(), most = 10_000) {
  const levels = new Map<string, Level>()
  return {
    /** Milliseconds to wait when this address has used up its failures, else 0. Does not count. */
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
      if (levels.size > most) levels.delete(levels.keys().next().value!)
    },
  }
}
