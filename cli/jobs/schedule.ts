/** When a job is asked after: first 2 s after its submission, then after 5, 10, 20 and 30 s, and every 30 s from there. */
const intervalsMs = [2_000, 5_000, 10_000, 20_000, 30_000] as const

/** After this long without an end nobody asks any more. */
export const longestPollingMs = 30 * 60_000

/**
 * How long to wait before the poll with this number, the first being 0. `asked` is what the server said with its last
 * answer (`Retry-After`, `openai-poll-after-ms`), if anything: never sooner than that.
 */
export const pollAfterMs = (poll: number, asked = 0): number =>
  Math.max(intervalsMs[Math.min(poll, intervalsMs.length - 1)]!, asked)

/** What the headers of an answer say about when to ask again, milliseconds; 0 where they say nothing. */
export function requestedDelayMs(headers: Record<string, string | string[] | undefined>): number {
  const number = (name: string) => Number(headers[name] ?? Number.NaN)
  const waits = [number('openai-poll-after-ms'), number('retry-after-ms'), number('retry-after') * 1000]
  return waits.find(ms => Number.isFinite(ms) && ms > 0) ?? 0
}
