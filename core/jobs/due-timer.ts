import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { JobRecord, Store, WaitingJob } from '../store/store.ts'

const batchSize = 500
/** At most an hour, so that a changed clock is noticed within this. */
const maxTimerMs = 3_600_000

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
  let next: { at: number; timer: NodeJS.Timeout } | undefined
  let checking: Promise<void> | undefined
  let closed = false

  /** Sets the timer for something that is due at this time. */
  function at(time: number): void {
    if (closed || (next && next.at <= time)) return
    clearTimeout(next?.timer)
    const inMs = Math.min(Math.max(0, time - clock.now()), maxTimerMs)
    next = { at: time, timer: setTimeout(check, inMs).unref() }
  }

  function check(): void {
    clearTimeout(next?.timer)
    next = undefined
    checking ??= processDue().finally(() => {
      checking = undefined
    })
  }

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
  let retryOnTick = false

  return {
    at,
    check,
    tick(): void {
      if (!retryOnTick && !(next && next.at <= clock.now())) return
      retryOnTick = false
      check()
    },
    async close(): Promise<void> {
      closed = true
      clearTimeout(next?.timer)
      await checking
    },
  }
}
export type DueTimer = ReturnType<typeof openDueTimer>
