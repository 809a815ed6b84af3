import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'

const everyMs = 60_000
const batchSize = 100
/** Between two bites: nearly nothing while nothing runs, and others go first while something does. */
const idlePauseMs = 20
const busyPauseMs = 1_000

/** Forgets jobs whose time is over, a few at a time, mostly when there is nothing else to do. */
export function openSweep({
  store,
  clock,
  steady,
  log,
  busy,
}: {
  store: Pick<Store['jobs'], 'sweep'>
  clock: { now(): number }
  /** By which idempotency keys are kept. */
  steady: { now(): number }
  log: Log
  busy: () => boolean
}) {
  const over = new AbortController()
  const { signal } = over
  const pause = (ms: number) => delay(ms, undefined, { ref: false, signal })

  async function go(): Promise<void> {
    while (!signal.aborted) {
      await pause(everyMs)
      try {
        while ((await store.sweep(clock.now(), batchSize, steady.now())) > 0)
          await pause(busy() ? busyPauseMs : idlePauseMs)
      } catch (thrown) {
        if (signal.aborted) return
        if (!Failure.from(thrown).retryable) log.error('What is over could not be forgotten', {}, thrown)
      }
    }
  }
  const going = go().catch(() => {})

  return {
    async close(): Promise<void> {
      over.abort()
      await going
    },
  }
}
