/**
 * Work that becomes due: it runs when `check` is called and at the earliest of the times given to `at`, one run after the
 * other. A check during a run leads to another run, so that nothing is missed. `work` must not reject.
 */
export function openDueWork(options: {
  work: () => Promise<void>
  clock?: { now(): number }
  /** The longest timer, milliseconds: a changed clock is noticed within this. */
  maxTimerMs?: number
}) {
  const { work, clock = Date, maxTimerMs = 3_600_000 } = options
  let next: { at: number; timer: NodeJS.Timeout } | undefined
  let running: Promise<void> | undefined
  let again = false
  let closed = false

  function clear(): void {
    clearTimeout(next?.timer)
    next = undefined
  }

  async function run(): Promise<void> {
    try {
      while (again) {
        again = false
        await work()
      }
    } finally {
      running = undefined
    }
  }

  /** Resolves when a run that began after this call has ended. */
  function check(): Promise<void> {
    clear()
    if (closed) return Promise.resolve()
    again = true
    return (running ??= run())
  }

  /** Runs at this time, epoch milliseconds, unless an earlier one is set. */
  function at(time: number): void {
    if (closed || (next && next.at <= time)) return
    clear()
    const inMs = Math.min(Math.max(0, time - clock.now()), maxTimerMs)
    next = { at: time, timer: setTimeout(() => void check(), inMs).unref() }
  }

  /** Runs no more. Resolves when the current run has ended. */
  async function close(): Promise<void> {
    closed = true
    again = false
    clear()
    await running
  }

  /** Whether the time that is set has passed, because the clock was changed. */
  const isDue = (): boolean => next !== undefined && next.at <= clock.now()

  return { check, at, isDue, close }
}
export type DueWork = ReturnType<typeof openDueWork>
