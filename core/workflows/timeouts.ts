import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'

const batchSize = 100
/** Timers hold no more; and a clock that was set is noticed within this. */
const longestTimerMs = 60_000
const sweepEveryMs = 60_000

/** Ends executions whose time is over, and forgets those that have been kept for long enough. */
export function openTimeouts({
  store,
  clock,
  log,
}: {
  store: Pick<Store['executions'], 'expire' | 'nextDue' | 'sweep'>
  clock: { now(): number }
  log: Log
}) {
  const over = new AbortController()
  let next: { at: number; timer: NodeJS.Timeout } | undefined
  let looking: Promise<void> | undefined
  let again = false

  /** The time of one is over then. */
  function at(due: number): void {
    if (over.signal.aborted || (next && next.at <= due)) return
    clearTimeout(next?.timer)
    const inMs = Math.min(Math.max(0, due - clock.now()), longestTimerMs)
    next = { at: due, timer: setTimeout(look, inMs).unref() }
  }

  function look(): void {
    clearTimeout(next?.timer)
    next = undefined
    again = true
    looking ??= all().finally(() => {
      looking = undefined
    })
  }

  async function all(): Promise<void> {
    while (again && !over.signal.aborted) {
      again = false
      try {
        const due = await store.nextDue()
        if (due === null) continue
        if (due <= clock.now()) {
          await store.expire(clock.now(), batchSize)
          again = true
        } else at(due)
      } catch (thrown) {
        if (!Failure.from(thrown).retryable) log.error('Executions that are due could not be ended', {}, thrown)
        at(clock.now() + 1_000)
      }
    }
  }

  async function sweep(): Promise<void> {
    const { signal } = over
    while (!signal.aborted) {
      await delay(sweepEveryMs, undefined, { ref: false, signal })
      try {
        while ((await store.sweep(clock.now(), batchSize)) > 0) await delay(20, undefined, { ref: false, signal })
      } catch (thrown) {
        if (!signal.aborted && !Failure.from(thrown).retryable)
          log.error('Executions that are over could not be forgotten', {}, thrown)
      }
    }
  }

  look()
  const sweeping = sweep().catch(() => {})

  return {
    at,
    async close(): Promise<void> {
      over.abort()
      clearTimeout(next?.timer)
      await Promise.all([looking, sweeping])
    },
  }
}
