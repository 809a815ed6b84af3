import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { JobRecord, Store, WaitingJob } from '../store/store.ts'

const batchSize = 500
/** Timers hold no more; and a clock that was set is noticed within this. */
const longestTimerMs = 3_600_000

/**
 * Jobs that become due with time: those that were to wait, and those that had to begin by now. One timer for the
 * earliest of them. `tick` is the net below it, for a clock that was set and a store that had no room.
 */
export function openDueTimer({
  store,
  clock,
  log,
  woken,
  expired,
}: {
  store: Pick<Store['jobs'], 'wake' | 'expire' | 'nextDue'>
  clock: { now(): number }
  log: Log
  woken: (jobs: readonly WaitingJob[]) => void
  expired: (jobs: readonly JobRecord[]) => void
}) {
  let next: { at: number; timer: NodeJS.Timeout } | undefined
  let looking: Promise<void> | undefined
  let closed = false

  /** Something is due then. */
  function at(time: number): void {
    if (closed || (next && next.at <= time)) return
    clearTimeout(next?.timer)
    const inMs = Math.min(Math.max(0, time - clock.now()), longestTimerMs)
    next = { at: time, timer: setTimeout(look, inMs).unref() }
  }

  function look(): void {
    clearTimeout(next?.timer)
    next = undefined
    looking ??= all().finally(() => {
      looking = undefined
    })
  }

  async function all(): Promise<void> {
    try {
      for (let more = true; more; ) {
        if (closed) return
        const due = await store.nextDue()
        if (due === null) return
        const now = clock.now()
        if (due > now) return at(due)
        const those = await store.wake(now, batchSize)
        woken(those)
        const over = await store.expire(now, batchSize)
        expired(over)
        more = those.length + over.length > 0
      }
    } catch (thrown) {
      if (!Failure.from(thrown).retryable) log.error('Jobs that are due could not be read', {}, thrown)
    }
    // Looked at again with the tick: not at once, or a store that cannot write would be asked without end.
    if (!closed) missed = true
  }
  let missed = false

  return {
    at,
    look,
    tick(): void {
      if (!missed && !(next && next.at <= clock.now())) return
      missed = false
      look()
    },
    async close(): Promise<void> {
      closed = true
      clearTimeout(next?.timer)
      await looking
    },
  }
}
export type DueTimer = ReturnType<typeof openDueTimer>
