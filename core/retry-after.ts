const dayMs = 86_400_000

/** Reads `Retry-After`, seconds or a date, as milliseconds, a day at most. Undefined if it is not understood. */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined
  const ms = /^\s*\d{1,9}(\.\d{1,9})?\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), dayMs) : undefined
}
