import { setTimeout as wait } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'

/** Maximum time for which a request is repeated while its model loads. Milliseconds. */
const longestWaitMs = 600_000
/**
 * Maximum pause between requests, shorter than the server's estimate: a repeated request waits in the server.
 * Milliseconds.
 */
const longestPauseMs = 5_000

export interface LoadWaitOptions {
  signal?: AbortSignal
  /** Called before each repetition of the request. */
  onWait?: (failure: Failure) => void
}

/** Returns the time until which to wait for a model to load, on the monotonic clock. */
export const loadDeadline = (): number => performance.now() + longestWaitMs

/** Waits when the model is loading, as long as the server says but at most 5 s; throws any other error. */
export async function waitOrThrow(
  thrown: unknown,
  giveUpAt: number,
  { signal, onWait }: LoadWaitOptions,
): Promise<void> {
  if (!(thrown instanceof Failure) || thrown.code !== 'model_warming_up') throw thrown
  const pauseMs = Math.min(thrown.retryAfterMs ?? longestPauseMs, longestPauseMs)
  if (performance.now() + pauseMs > giveUpAt) throw thrown
  onWait?.(thrown)
  await wait(pauseMs, undefined, signal ? { signal } : {})
}

/** Sends the request, and repeats it while its model loads. */
export async function untilLoaded<T>(request: () => Promise<T>, options: LoadWaitOptions): Promise<T> {
  const giveUpAt = loadDeadline()
  for (;;) {
    try {
      return await request()
    } catch (thrown) {
      await waitOrThrow(thrown, giveUpAt, options)
    }
  }
}
