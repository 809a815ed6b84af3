/**
 * Releases `size` waiting callers every `everyMs` milliseconds, in their order; the first after a pause at once.
 * Between batches the event loop serves all others: Node accepts one connection per iteration, so a request on a new
 * connection waits for as many iterations as connections came before it. Callers whose client has disconnected do not
 * count towards a batch, so that connections that are opened and closed at once delay nobody.
 */
export function openPacer({ size, everyMs }: { size: number; everyMs: number }) {
  const waiting: { resolve: () => void; isGone: () => boolean }[] = []
  /** When the last batch was released, monotonic milliseconds. */
  let lastAt = Number.NEGATIVE_INFINITY
  let scheduled = false

  function releaseBatch() {
    scheduled = false
    lastAt = performance.now()
    let count = 0
    let present = 0
    while (count < waiting.length && present < size) if (!waiting[count++]!.isGone()) present++
    for (const { resolve } of waiting.splice(0, count)) resolve()
    if (waiting.length > 0) schedule()
  }

  function schedule() {
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
    /** Resolves when the caller may continue. `isGone`: whether its client has disconnected. */
    wait: (isGone: () => boolean = () => false): Promise<void> =>
      new Promise(resolve => {
        waiting.push({ resolve, isGone })
        schedule()
      }),
  }
}
