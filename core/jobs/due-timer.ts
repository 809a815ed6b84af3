import { openDueWork } from '../due-work.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { JobRecord, Store, WaitingJob } from '../store/store.ts'

const batchSize = 500

/**
 * Watches jobs that become due: delayed jobs and start deadlines. One timer for the earliest of them. `tick` covers a
 * changed clock and a store that was full.
 */
export function openDueTimer(options: {
  store: Pick<Store['jobs'], 'wake' | 'expire' | 'nextDue'>
  clock: { now(): number }
  log: Log
  woken: (jobs: readonly WaitingJob[]) => void
  expired: (jobs: readonly JobRecord[]) => void
}) {
  const { store, clock, log, woken, expired } = options
  const { at, check, isDue, close } = openDueWork({ work: processDue, clock })
  let closed = false
  let retryOnTick = false

  async function processDue(): Promise<void> {
    try {
      for (let more = true; more; ) {
        if (closed) return
        const due = await store.nextDue()
        if (due === null) return
        const now = clock.now()
        if (due > now) return at(due)
        const dueJobs = await store.wake(now, batchSize)
        woken(dueJobs)
        const expiredJobs = await store.expire(now, batchSize)
        expired(expiredJobs)
        more = dueJobs.length + expiredJobs.length > 0
      }
    } catch (thrown) {
      if (!Failure.from(thrown).retryable) log.error('Due jobs could not be processed', {}, thrown)
    }
    // Tried again by the tick, not at once: a store that cannot write would be called in an endless loop.
    if (!closed) retryOnTick = true
  }
  return {
    at,
    check: () => void check(),
    tick(): void {
      if (!retryOnTick && !isDue()) return
      retryOnTick = false
      void check()
    },
    close(): Promise<void> {
      closed = true
      return close()
    },
  }
}
export type DueTimer = ReturnType<typeof openDueTimer>
