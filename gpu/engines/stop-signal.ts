/**
 * Aborts on SIGTERM or SIGINT. Does not use `once`: the library signal-exit ends the process if its listener is the
 * only one.
 */
export function openStopSignal(): Disposable & { signal: AbortSignal; stopped: Promise<void> } {
  const stop = new AbortController()
  const onSignal = () => stop.abort()
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  return {
    signal: stop.signal,
    stopped: new Promise(resolve => stop.signal.addEventListener('abort', () => resolve(), { once: true })),
    [Symbol.dispose]() {
      process.off('SIGTERM', onSignal)
      process.off('SIGINT', onSignal)
    },
  }
}
