/** The clock of the residency rules. Monotonic, so that a jump of the wall clock neither loads nor unloads a model. */
export interface Clock {
  /** Milliseconds from an arbitrary start; never goes back. */
  now: () => number
  /** Epoch milliseconds, for display only. */
  epoch: () => number
  /** Calls `run` once after `ms`, or after 24 days if that is sooner. Returns a function that cancels the call. */
  after(ms: number, run: () => void): () => void
}

/** A time of the wall clock, on the monotonic one. */
export const fromEpoch = ({ now, epoch }: Clock, at: number): number => now() + at - epoch()

/** The system's clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  after(ms, run) {
    // A longer timer of node would end at once.
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1))
    timer.unref()
    return () => clearTimeout(timer)
  },
}
