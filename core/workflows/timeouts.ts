import { openDueWork } from '../due-work.ts'
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
  const due = openDueWork({ work: expireDue, clock, maxTimerMs })

  async function expireDue(): Promise<void> {
    try {
      const next = await store.nextDue()
      if (next === null) return
      if (next > clock.now()) return due.at(next)
      await store.expire(clock.now(), batchSize)
      void due.check()
    } catch (thrown) {
      if (!Failure.from(thrown).retryable) log.error('Executions could not be timed out', {}, thrown)
      due.at(clock.now() + 1_000)
    }
  }

  void due.check()
  const sweep = openSweep({
    sweep: () => store.sweep(clock.now(), batchSize),
    pauseMs: () => 20,
    log,
    failed: 'Expired executions could not be removed',
  })

  return {
    /** An execution times out at this time. */
    at: due.at,
    async close(): Promise<void> {
      await Promise.all([due.close(), sweep.close()])
    },
  }
}
