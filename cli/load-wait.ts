import { setTimeout as wait } from 'node:timers/promises'
import { Failure } from '../core/failure.ts'

/** While a model is being loaded a request is refused with a time; it is put again for this long. */
const longestWaitMs = 600_000
/** The server holds each request for a while, so that asking sooner than it says costs little and ends sooner. */
const longestPauseMs = 5_000

export interface LoadWaitOptions {
  signal?: AbortSignal
  /** Called each time the model is still being loaded and the request is put again. */
  onWait?: (failure: Failure) => void
}

/** When to give up on a model that is being loaded, on the monotonic clock. */
export const loadDeadline = (): number => performance.now() + longestWaitMs

/** Waits as long as the refusal says, 5 s at most, when the model is being loaded; throws whatever else was thrown. */
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

/** Does the request, again and again while its model is being loaded. */
export async function untilLoaded<T>(request: () => Promise<T>, patience: LoadWaitOptions): Promise<T> {
  const giveUpAt = loadDeadline()
  for (;;) {
    try {
      return await request()
    } catch (thrown) {
      await waitOrThrow(thrown, giveUpAt, patience)
    }
  }
}
