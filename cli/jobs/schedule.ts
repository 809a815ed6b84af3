/** Intervals of polling a job: 2 s after its submission, then 5, 10, 20 and 30 s, and every 30 s from then on. */
const intervalsMs = [2_000, 5_000, 10_000, 20_000, 30_000] as const

/** Polling stops after this time. */
export const longestPollingMs = 30 * 60_000

/**
 * Returns the delay before the poll with this number; the first is 0. `minDelayMs` is the delay that the server
 * requested in its last response (`Retry-After`, `openai-poll-after-ms`).
 */
export const pollAfterMs = (poll: number, minDelayMs = 0): number =>
  Math.max(intervalsMs[Math.min(poll, intervalsMs.length - 1)]!, minDelayMs)

/** Returns the delay that the headers of a response request, in milliseconds; 0 when they request none. */
export function requestedDelayMs(headers: Record<string, string | string[] | undefined>): number {
  const number = (name: string) => Number(headers[name] ?? Number.NaN)
  const waits = [number('openai-poll-after-ms'), number('retry-after-ms'), number('retry-after') * 1000]
  return waits.find(ms => Number.isFinite(ms) && ms > 0) ?? 0
}
