/** How long loads and requests of one model take: moving averages in milliseconds, null before the first one. */
export interface ExpectedDurations {
  loadMs: number | null
  runMs: number | null
}

/**
 * Milliseconds until a model that has been loading for `loadingForMs` is ready; null when it was never loaded before.
 */
export const untilReady = (durations: ExpectedDurations, loadingForMs: number): number | null =>
  durations.loadMs === null ? null : Math.max(0, durations.loadMs - loadingForMs)

/**
 * Milliseconds until a request behind `waiting` others gets one of `slots`; null before the first completed request.
 */
export const untilFree = (durations: ExpectedDurations, waiting: number, slots: number): number | null =>
  durations.runMs === null || slots <= 0 ? null : (durations.runMs * (waiting + 1)) / slots
