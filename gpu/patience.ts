import type { Failure } from '../core/failure.ts'
import type { Leaving } from '../core/leaving.ts'
import type { Clock } from './clock.ts'

export interface Patience {
  ms: number
  signal?: Leaving | undefined
  clock: Pick<Clock, 'after'>
  /** What is said when the time is over. */
  late: () => Failure
}

/**
 * What comes of the work, for as long as somebody waits for it: rejects with `late`, or with the signal's reason. The
 * work itself goes on.
 */
export function patiently<T>(work: Promise<T>, { ms, signal, clock, late }: Patience): Promise<T> {
  return new Promise((resolve, reject) => {
    const gone = () => leave(signal!.reason)
    const cancel = clock.after(ms, () => leave(late()))
    signal?.addEventListener('abort', gone, { once: true })
    const settled = () => {
      cancel()
      signal?.removeEventListener('abort', gone)
    }
    const leave = (reason: unknown) => {
      settled()
      reject(reason)
    }
    work.finally(settled).then(resolve, reject)
    if (signal?.aborted) gone()
  })
}
