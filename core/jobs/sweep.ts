import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'

const everyMs = 60_000
const batchSize = 100
/** Pause between two batches: short while idle; longer while jobs run, so that they go first. */
const idlePauseMs = 20
const busyPauseMs = 1_000

/** Removes expired jobs, a few at a time, mostly when the server is idle. */
export function openSweep(options: {
  store: Pick<Store['jobs'], 'sweep'>
  clock: { now(): number }
  /** The clock by which idempotency keys expire. */
  steady: { now(): number }
  log: Log
  busy: () => boolean
}) {
  const { store, clock, steady, log, busy } = options
  const closed = new AbortController()
  const { signal } = closed
  const pause = (ms: number) => delay(ms, undefined, { ref: false, signal })

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await pause(everyMs)
      try {
        while ((await store.sweep(clock.now(), batchSize, steady.now())) > 0)
          await pause(busy() ? busyPauseMs : idlePauseMs)
      } catch (thrown) {
        if (signal.aborted) return
        if (!Failure.from(thrown).retryable) log.error('Expired jobs could not be removed', {}, thrown)
      }
    }
  }
  const running = run().catch(() => {})

  return {
    async close(): Promise<void> {
      closed.abort()
      await running
    },
  }
}
