/**
 * Releases `size` waiting callers every `everyMs` milliseconds, in their order; the first after a pause at once.
 * Between batches the event loop serves all others: Node accepts one connection per iteration, so a request on a new
 * connection waits for as many iterations as connections came before it.
 */
export function openPacer({ size, everyMs }: { size: number; everyMs: number }) {
  const waiting: (() => void)[] = []
  /** When the last batch was released, monotonic milliseconds. */
  let lastAt = Number.NEGATIVE_INFINITY
  let scheduled = false

  function releaseBatch(): void {
    scheduled = false
    lastAt = performance.now()
    for (const resolve of waiting.splice(0, size)) resolve()
    if (waiting.length > 0) schedule()
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    const remainingMs = lastAt + everyMs - performance.now()
    if (remainingMs > 0) setTimeout(releaseBatch, remainingMs)
    else setImmediate(releaseBatch)
  }

  return {
    /** How many callers wait. */
    get waiting(): number {
      return waiting.length
    },
    /** Resolves when the caller may continue. */
    wait: (): Promise<void> =>
      new Promise(resolve => {
        waiting.push(resolve)
        schedule()
      }),
  }
}
