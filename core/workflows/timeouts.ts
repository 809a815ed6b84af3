import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { openSweep } from '../sweep.ts'

const batchSize = 100
/** At most a minute, so that a changed clock is noticed within this. */
const maxTimerMs = 60_000

/** Ends executions that have reached their time limit, and removes expired ones. */
export function openTimeouts(options: {
  store: Pick<Store['executions'], 'expire' | 'nextDue' | 'sweep'>
  clock: { now(): number }
  log: Log
}) {
  const { store, clock, log } = options
  const closed = new AbortController()
  let next: { at: number; timer: NodeJS.Timeout } | undefined
  let checking: Promise<void> | undefined
  let pending = false

  /** Sets the timer for an execution that times out then. */
  function at(due: number): void {
    if (closed.signal.aborted || (next && next.at <= due)) return
    clearTimeout(next?.timer)
    const inMs = Math.min(Math.max(0, due - clock.now()), maxTimerMs)
    next = { at: due, timer: setTimeout(check, inMs).unref() }
  }

  function check(): void {
    clearTimeout(next?.timer)
    next = undefined
    pending = true
    checking ??= expireDue().finally(() => {
      checking = undefined
    })
  }

  async function expireDue(): Promise<void> {
    while (pending && !closed.signal.aborted) {
      pending = false
      try {
        const due = await store.nextDue()
        if (due === null) continue
        if (due <= clock.now()) {
          await store.expire(clock.now(), batchSize)
          pending = true
        } else at(due)
      } catch (thrown) {
        if (!Failure.from(thrown).retryable) log.error('Executions could not be timed out', {}, thrown)
        at(clock.now() + 1_000)
      }
    }
  }

  check()
  const sweep = openSweep({
    sweep: () => store.sweep(clock.now(), batchSize),
    pauseMs: () => 20,
    log,
    failed: 'Expired executions could not be removed',
  })

  return {
    at,
    async close(): Promise<void> {
      closed.abort()
      clearTimeout(next?.timer)
      await Promise.all([checking, sweep.close()])
    },
  }
}
