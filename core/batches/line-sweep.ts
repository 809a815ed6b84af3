import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'

const atOnce = 500
const pauseMs = 100

/** Deletes the line rows of batches that have ended, a few at a time, so that other work never waits for it. */
export function openLineSweep({ store, log }: { store: Pick<Store['batches'], 'sweep'>; log: Log }) {
  const closed = new AbortController()
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    try {
      while (!closed.signal.aborted && (await store.sweep(atOnce)) > 0)
        await delay(pauseMs, undefined, { ref: false, signal: closed.signal })
    } catch (thrown) {
      if (closed.signal.aborted || Failure.from(thrown).retryable) return
      log.error('Lines of ended batches could not be deleted', {}, thrown)
    }
  }

  return {
    /** Call it after a batch has ended. */
    wake(): void {
      running ??= run().finally(() => {
        running = undefined
      })
    },
    async close(): Promise<void> {
      closed.abort()
      await running
    },
  }
}
