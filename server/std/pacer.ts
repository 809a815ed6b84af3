/**
 * Lets `size` of those that wait go on every `everyMs` milliseconds, in the order in which they came; the first of a
 * quiet time at once. Between them the event loop serves everybody else: Node accepts one connection per iteration, so
 * a request on a new connection waits for as many iterations as connections came before it.
 */
export function openPacer({ size, everyMs }: { size: number; everyMs: number }) {
  const waiting: (() => void)[] = []
  /** When the last batch went on, monotonic milliseconds. */
  let lastAt = Number.NEGATIVE_INFINITY
  let scheduled = false

  function goOn(): void {
    scheduled = false
    lastAt = performance.now()
    for (const resolve of waiting.splice(0, size)) resolve()
    if (waiting.length > 0) schedule()
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    const leftMs = lastAt + everyMs - performance.now()
    if (leftMs > 0) setTimeout(goOn, leftMs)
    else setImmediate(goOn)
  }

  return {
    /** How many wait. */
    get waiting(): number {
      return waiting.length
    },
    /** Resolves when the caller may go on. */
    wait: (): Promise<void> =>
      new Promise(resolve => {
        waiting.push(resolve)
        schedule()
      }),
  }
}
