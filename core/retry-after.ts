/**
 * Returns the milliseconds after which a client may retry a refused request: the expected time, but at least one second,
 * so that clients do not retry in a loop, and at most five minutes. Undefined without an expected time.
 */
export const retryAfter = (etaMs: number | null): number | undefined =>
  etaMs === null ? undefined : Math.min(300_000, Math.max(1_000, Math.ceil(etaMs)))
