/**
 * Aborts when this process is asked to end, by SIGTERM or SIGINT. Not `once`: a library (signal-exit) ends the process
 * when it finds itself the only listener left.
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
