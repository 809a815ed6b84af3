/** Time as the residency rules see it: monotonic, so that a jump of the wall clock loads and unloads nothing. */
export interface Clock {
  /** Milliseconds from an arbitrary start; never goes back. */
  now: () => number
  /** Epoch milliseconds, for showing. */
  epoch: () => number
  /** Calls `run` once after `ms`; the answer cancels it. */
  after(ms: number, run: () => void): () => void
}

/** The machine's own time. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}
