/** Returns the result of `done`. Rejects with the reason of the signal if that aborts first; the work goes on. */
export async function abortable<T>(done: Promise<T>, signal: AbortSignal): Promise<T> {
  // Nobody may be there to hear it.
  done.catch(() => {})
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([done, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
