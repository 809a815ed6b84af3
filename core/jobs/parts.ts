import type { Log } from '../log.ts'
import type { Fleet } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import type { Store, WaitingJob } from '../store/store.ts'
import type { RunJob } from '../tasks/run-job.ts'
import { openArrivals } from './arrivals.ts'
import { openCalls } from './calls.ts'
import { openDispatch } from './dispatch.ts'
import { openDue } from './due.ts'
import { openFacts } from './facts.ts'
import { type Named, openLive } from './live.ts'
import { openPace } from './pace.ts'
import { openQueue, waitingOf } from './queue.ts'
import { openRecorder } from './recorder.ts'
import { openRefill } from './refill.ts'
import { openRuns } from './runs.ts'
import { openSweep } from './sweep.ts'
import { openWaiters } from './waiters.ts'
import { openWaitingCalls } from './waiting-calls.ts'

export interface JobsOptions {
  store: Store
  fleet: Pick<Fleet, 'take' | 'demandChanged' | 'connect' | 'activity' | 'slots' | 'snapshot'>
  /** The models as configured now, disabled ones too. */
  models: { find(id: string): Model | undefined }
  run: RunJob
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  log: Log
  clock?: { now(): number }
  /** By which idempotency keys are kept; the clock when absent. */
  steady?: { now(): number }
  /** How many slots are held at once, in all and of one model. */
  slots?: number
  slotsPerModel?: number
  /** The net below the wake-ups. */
  tickMs?: number
}

/** What jobs are run with, put together: what wakes what. Starts at once with what the store holds. */
export function openParts(options: JobsOptions) {
  const { store, fleet, models, run, weightOf, log, tickMs = 1_000 } = options
  const { clock = { now: Date.now }, slots = 256, slotsPerModel = 32 } = options
  const { steady = clock } = options
  const queue = openQueue({ weightOf })
  const waiting = openWaitingCalls({ queue })
  const rankOf = openArrivals(clock)
  const recorder = openRecorder({ store, log })
  const pace = openPace()
  const waiters = openWaiters({ store: store.jobs, log })
  const failed = (thrown: unknown) => log.error('A follower of jobs failed', {}, thrown)
  const live = openLive({ now: () => clock.now(), failed })
  const refill = openRefill({ store: store.jobs, queue, log, filled: modelId => dispatch.look(modelId) })
  const due = openDue({
    store: store.jobs,
    clock,
    log,
    woken: wait,
    expired(jobs) {
      for (const job of jobs) {
        queue.remove(waitingOf(job), job.notBefore <= clock.now())
        ended(job)
      }
    },
  })
  const runs = openRuns({
    store: store.jobs,
    run,
    queue,
    live,
    pace,
    log,
    clock,
    dispatch: () => dispatch,
    ended,
    delayed: due.at,
  })
  const dispatch = openDispatch({
    fleet,
    find: id => models.find(id),
    queue,
    calls: waiting,
    refill,
    log,
    begin: (turn, lease) => runs.begin(turn, lease),
    unwritten: () => runs.size - dispatch.held(),
    slots,
    slotsPerModel,
  })
  const sweep = openSweep({ store: store.jobs, clock, steady, log, busy: () => runs.size > 0 })
  const calls = openCalls({ fleet, dispatch, queue, waiting, recorder, pace, rankOf, log })
  const facts = openFacts({ fleet, models, queue, live, pace, dispatch, clock })
  const tick = setInterval(() => {
    due.tick()
    refill.wake()
    dispatch.lookAtAll()
  }, tickMs).unref()

  /** These wait from now on. */
  function wait(jobs: readonly WaitingJob[]): void {
    for (const job of jobs) queue.offer(job)
    for (const modelId of new Set(jobs.map(job => job.modelId))) dispatch.look(modelId)
  }

  function ended(job: Named): void {
    waiters.tell(job)
    live.moved(job)
  }

  const begun = refill.begin().then(() => {
    due.look()
    dispatch.lookAtAll()
  })

  return {
    queue,
    calls,
    recorder,
    rankOf,
    waiters,
    live,
    due,
    runs,
    dispatch,
    facts,
    clock,
    wait,
    ended,
    /** Settles when what waited before has been counted. */
    begun,
    /** Takes up nothing more; what runs goes on. */
    async close(): Promise<void> {
      clearInterval(tick)
      dispatch.close()
      runs.drain()
      await Promise.allSettled([refill.close(), begun, due.close(), sweep.close()])
    },
  }
}
