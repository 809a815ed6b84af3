/** How long things take for one model, learnt from what they took; null until something has been seen. */
export interface ExpectedDurations {
  loadMs: number | null
  runMs: number | null
}

/** Milliseconds until a model that has been loading for a while is ready; null when it never has been before. */
export const untilReady = (pace: ExpectedDurations, loadingForMs: number): number | null =>
  pace.loadMs === null ? null : Math.max(0, pace.loadMs - loadingForMs)

/** Milliseconds until the one that comes after `waiting` others gets one of `slots`; null while nothing is known. */
export const untilFree = (pace: ExpectedDurations, waiting: number, slots: number): number | null =>
  pace.runMs === null || slots <= 0 ? null : (pace.runMs * (waiting + 1)) / slots
