import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Fleet, FleetSnapshot } from '../fleet.ts'
import type { Log } from '../log.ts'
import type { Model } from '../models/model.ts'
import type { JobRecord, LogLine, NewJob, Store, WaitingJob } from '../store/store.ts'
import { workOf } from '../tasks/work.ts'
import { openArrivals } from './arrivals.ts'
import { openDispatch } from './dispatch.ts'
import { openDue } from './due.ts'
import { openLive } from './live.ts'
import { openPace } from './pace.ts'
import { openQueue } from './queue.ts'
import { openRefill } from './refill.ts'
import type { RunJob } from './run.ts'
import { openRuns } from './runs.ts'
import { type Standing, standingOf } from './standing.ts'
import { openSweep } from './sweep.ts'
import { openWaiters } from './waiters.ts'

export interface JobsWish {
  store: Store
  fleet: Pick<Fleet, 'lease' | 'snapshot'>
  /** The models as configured now, disabled ones too. */
  models: { find(id: string): Model | undefined }
  run: RunJob
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  log: Log
  clock?: { now(): number }
  /** How many slots are held at once, in all and of one model. */
  slots?: number
  slotsPerModel?: number
  /** The net below the wake-ups. */
  tickMs?: number
}

/** After a drain has interrupted a run, how long it gets to end before its job is given back over its head. */
const interruptGraceMs = 2_000
/** A snapshot of the fleet serves everybody who asks for that long. */
const snapshotMs = 100

const shuttingDown = () =>
  new Failure('shutting_down', 'This server is shutting down. Retry later.', { retryAfterMs: 5_000 })

/**
 * Durable jobs: submitted with a commit, run in a fair order when a slot is free, ended exactly once. Starts at once
 * with what the store holds.
 */
export function openJobs(wish: JobsWish) {
  const { store, fleet, models, run, weightOf, log, tickMs = 1_000 } = wish
  const { clock = { now: Date.now }, slots = 256, slotsPerModel = 32 } = wish
  const queue = openQueue({ weightOf })
  const pace = openPace()
  const waiters = openWaiters()
  const rankOf = openArrivals(clock)
  const failed = (thrown: unknown) => log.error('A follower of jobs failed', {}, thrown)
  const live = openLive({ now: clock.now, failed })
  const refill = openRefill({ store: store.jobs, queue, log, filled: modelId => dispatch.look(modelId) })
  const find = (id: string) => models.find(id)
  const due = openDue({
    store: store.jobs,
    clock,
    log,
    woken(jobs) {
      for (const job of jobs) queue.offer(job)
      for (const modelId of new Set(jobs.map(job => job.modelId))) dispatch.look(modelId)
    },
    expired(jobs) {
      for (const job of jobs) {
        queue.remove(job)
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
    find,
    queue,
    refill,
    log,
    begin: runs.begin,
    unwritten: () => runs.size - dispatch.held(),
    slots,
    slotsPerModel,
  })
  const sweep = openSweep({ store: store.jobs, clock, log, busy: () => runs.size > 0 })
  let draining = false
  let looked: { at: number; snapshot: FleetSnapshot } | undefined
  const tick = setInterval(() => {
    due.tick()
    refill.wake()
    dispatch.lookAtAll()
  }, tickMs).unref()

  function ended(job: JobRecord): void {
    waiters.tell(job)
    live.moved(job)
  }

  /** What waited before: counted first, so that whatever comes later is known to be new. */
  async function begin(): Promise<void> {
    for (let waitMs = 100; !draining; waitMs = Math.min(2 * waitMs, 5_000)) {
      try {
        queue.begin(await store.jobs.backlog())
        due.look()
        refill.wake()
        return dispatch.lookAtAll()
      } catch (thrown) {
        if (Failure.from(thrown).code === 'shutting_down') return
        log.error('The jobs that wait could not be counted; it is tried again', {}, thrown)
      }
      await delay(waitMs, undefined, { ref: false })
    }
  }
  const begun = begin()

  function snapshot(): FleetSnapshot {
    const at = performance.now()
    if (!looked || at - looked.at > snapshotMs) looked = { at, snapshot: fleet.snapshot() }
    return looked.snapshot
  }

  return {
    /** Resolves after the commit: from then on the job survives a crash. The same idempotency key finds the same job. */
    async submit(wanted: Omit<NewJob, 'rank'>): Promise<{ job: JobRecord; replayed: boolean }> {
      await begun
      if (draining) throw shuttingDown()
      const submitted = await store.jobs.submit({ ...wanted, rank: rankOf(wanted.priority) })
      const { job, replayed } = submitted
      if (replayed) return submitted
      if (job.startBy !== null) due.at(job.startBy)
      if (wanted.notBefore > wanted.createdAt) due.at(wanted.notBefore)
      else {
        queue.offer(waitingOf(job))
        dispatch.look(job.modelId)
      }
      live.moved(job)
      return submitted
    },

    /**
     * Cancelled once this resolves, whatever runs on; then the run is told. Undefined: the organization has no such
     * job. Throws Failure `job_already_finished`.
     */
    async cancel(organizationId: string, id: string): Promise<JobRecord | undefined> {
      await begun
      const now = clock.now()
      const job = await store.jobs.cancel(organizationId, id, now)
      if (!job) return undefined
      runs.stop(id, new Failure('cancelled', `The job ${id} was cancelled.`))
      queue.remove(waitingOf(job), job.finishedAt === now && job.startedAt === null && job.notBefore <= now)
      dispatch.look(job.modelId)
      ended(job)
      return job
    },

    /**
     * Resolves with the job when it ends in this process, with undefined when the signal aborts or the server drains.
     * Call it in the same turn as the look that found the job unfinished: an end before that is not told again.
     */
    wait: (id: string, signal: AbortSignal): Promise<JobRecord | undefined> => waiters.wait(id, signal),

    /** Forgets a job that has ended. Undefined: no such job here. Throws Failure `conflict` while it waits or runs. */
    async remove(organizationId: string, id: string): Promise<true | undefined> {
      const removed = await store.jobs.remove(organizationId, id, clock.now())
      if (removed) live.moved({ id, organizationId })
      return removed
    },

    /**
     * Calls the listener after every change of the job, its progress and its log, at most once in a turn of the event
     * loop, until the answer is called.
     */
    follow: live.follow,
    /** The same for every change of state of the organization's jobs. */
    followOrganization: live.followOrganization,

    /** How the job is doing, as of now. Cheap. */
    standing(job: JobRecord): Standing {
      const { modelId } = job
      const { residents, models: activities } = snapshot()
      const ready = residents.filter(one => one.modelId === modelId && one.state === 'ready')
      const sum = (of: (one: (typeof ready)[number]) => number) => ready.reduce((total, one) => total + of(one), 0)
      return standingOf(job, {
        now: clock.now(),
        run: live.find(job.id),
        position: job.status === 'pending' ? queue.position(waitingOf(job)) : undefined,
        expectedMs: pace.expected(modelId, workOf(job.task, job.inputs)),
        usualMs: pace.expected(modelId, null),
        model: models.find(modelId),
        activity: activities[modelId],
        slots: sum(one => one.slots),
        freeSlots: sum(one => Math.max(0, one.slots - one.leases)),
        cooling: dispatch.cooling(modelId),
      })
    },

    /** What its runs have said, oldest first: the stored ones, and the one under way. */
    async logs({ organizationId, id }: JobRecord): Promise<LogLine[]> {
      const stored = async () => JSON.parse(await store.jobs.logs(organizationId, id)) as LogLine[]
      const before = live.find(id)
      const lines = await stored()
      // The run may have ended during the look, and its lines with it been stored.
      if (live.find(id) !== before) return stored()
      const now = before?.lines() ?? []
      const [first] = now
      const known = first && lines.some(({ at, message }) => at === first.at && message === first.message)
      return known ? lines : [...lines, ...now]
    },

    stats: () => ({ running: dispatch.held(), draining, ...queue.stats() }),

    /**
     * Takes no more jobs, lets those that run finish for `deadlineMs`, then interrupts them and gives them back
     * uncharged.
     */
    async drain(deadlineMs: number): Promise<{ released: number }> {
      draining = true
      clearInterval(tick)
      dispatch.close()
      runs.drain()
      await Promise.allSettled([begun, due.close(), sweep.close(), refill.settled()])
      await Promise.race([runs.done(), delay(deadlineMs, undefined, { ref: false })])
      const released = runs.size
      runs.stopAll(shuttingDown())
      await Promise.race([runs.done(), delay(interruptGraceMs, undefined, { ref: false })])
      await runs.giveBackAll()
      waiters.letGo()
      return { released }
    },
  }
}
export type { Standing } from './standing.ts'
export type Jobs = ReturnType<typeof openJobs>

const waitingOf = ({ id, organizationId, modelId, rank }: JobRecord): WaitingJob => ({
  id,
  organizationId,
  modelId,
  rank,
})
