import { setTimeout as wait } from 'node:timers/promises'
import { Failure } from '../core/failure.ts'

/** While a model is being loaded a request is refused with a time; it is put again for this long. */
const longestWaitMs = 600_000

export interface Patience {
  signal?: AbortSignal
  /** Called each time the model is still being loaded and the request is put again. */
  onWait?: (failure: Failure) => void
}

/** When to give up on a model that is being loaded, on the monotonic clock. */
export const lastMoment = (): number => performance.now() + longestWaitMs

/** Waits as long as the refusal says when the model is being loaded; throws whatever else was thrown. */
export async function waitOrThrow(thrown: unknown, giveUpAt: number, { signal, onWait }: Patience): Promise<void> {
  const retryAfterMs =
    thrown instanceof Failure && thrown.code === 'model_warming_up' ? (thrown.retryAfterMs ?? 5_000) : undefined
  if (retryAfterMs === undefined || performance.now() + retryAfterMs > giveUpAt) throw thrown
  onWait?.(thrown as Failure)
  await wait(retryAfterMs, undefined, signal ? { signal } : {})
}

/** Does the request, again and again while its model is being loaded. */
export async function untilLoaded<T>(request: () => Promise<T>, patience: Patience): Promise<T> {
  const giveUpAt = lastMoment()
  for (;;) {
    try {
      return await request()
    } catch (thrown) {
      await waitOrThrow(thrown, giveUpAt, patience)
    }
  }
}
