/**
 * Milliseconds after which a refused request may try again: the expected time, at least one second so that nobody
 * hammers, at most five minutes; undefined where nothing is known.
 */
export const retryAfter = (etaMs: number | null): number | undefined =>
  etaMs === null ? undefined : Math.min(300_000, Math.max(1_000, Math.ceil(etaMs)))
