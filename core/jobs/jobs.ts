import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Fleet } from '../fleet.ts'
import type { Log } from '../log.ts'
import type { Model } from '../models/model.ts'
import type { JobRecord, LogLine, NewJob, Store, WaitingJob } from '../store/store.ts'
import { openArrivals } from './arrivals.ts'
import { openDispatch } from './dispatch.ts'
import { openDue } from './due.ts'
import { type Outlook, openFacts } from './facts.ts'
import { openLive } from './live.ts'
import { allLines } from './log-lines.ts'
import { openPace } from './pace.ts'
import { openQueue, waitingOf } from './queue.ts'
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
  const facts = openFacts({ fleet, models, queue, live, pace, dispatch, clock })
  let draining = false
  const tick = setInterval(() => {
    due.tick()
    refill.wake()
    dispatch.lookAtAll()
  }, tickMs).unref()

  function ended(job: JobRecord): void {
    waiters.tell(job)
    live.moved(job)
  }

  const begun = refill.begin().then(() => {
    if (draining) return
    due.look()
    dispatch.lookAtAll()
  })

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

    /** Jobs that the store has made by itself: from now on they wait here. */
    queued(those: readonly WaitingJob[]): void {
      for (const job of those) queue.offer(job)
      for (const modelId of new Set(those.map(job => job.modelId))) dispatch.look(modelId)
    },

    /** Jobs that the store has ended by itself: those that run are told. */
    withdrawn(those: readonly WaitingJob[]): void {
      for (const job of those) {
        const began = runs.has(job.id)
        runs.stop(job.id, new Failure('cancelled', `The job ${job.id} was cancelled with its execution.`))
        queue.remove(job, !began)
        live.moved(job)
        void store.jobs.find(job.organizationId, job.id).then(now => now && waiters.tell(now))
      }
      for (const modelId of new Set(those.map(job => job.modelId))) dispatch.look(modelId)
    },

    /** How the job is doing, as of now. Cheap. */
    standing: (job: JobRecord): Standing => standingOf(job, facts.ofJob(job)),

    /** What waits for a model, and how long one more job would. Cheap. */
    outlook: (modelId: string): Outlook => facts.ofModel(modelId),

    /** What its runs have said, oldest first: the stored ones, and the one under way. */
    logs: (job: JobRecord): Promise<LogLine[]> => allLines(job, { store: store.jobs, live }),

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
      await Promise.allSettled([refill.close(), begun, due.close(), sweep.close()])
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
