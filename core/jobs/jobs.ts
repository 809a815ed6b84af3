import { setTimeout as delay } from 'node:timers/promises'
import type { Admitted } from '../admission/admission.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Fleet, Lease } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import type { JobRecord, LogLine, NewJob, Store, WaitingJob } from '../store/store.ts'
import type { CommitEffects } from '../store/workflows.ts'
import type { RunJob } from '../tasks/run-job.ts'
import { openArrivals } from './arrivals.ts'
import { openCalls } from './calls.ts'
import { openDispatch } from './dispatch.ts'
import { openDueTimer } from './due-timer.ts'
import { openJobDurations } from './job-durations.ts'
import { openJobFacts, type QueueForecast } from './job-facts.ts'
import { type JobProgress, progressOf } from './job-progress.ts'
import { type JobKey, openLiveRuns } from './live-runs.ts'
import { allLines } from './log-lines.ts'
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

/** A job to store, of work that was admitted. */
export type AdmittedJob = Omit<NewJob, 'rank' | 'organizationId' | 'tokenId' | 'task' | 'modelId'> & {
  admitted: Admitted
}

/** After a drain has interrupted a run, how long it gets to end before its job is given back over its head. */
const interruptGraceMs = 2_000

const shuttingDown = () =>
  new Failure('shutting_down', 'This server is shutting down. Retry later.', { retryAfterMs: 5_000 })

/**
 * Durable jobs: submitted with a commit, run in a fair order when a slot is free, ended exactly once. Starts at once
 * with what the store holds.
 */
export function openJobs(options: JobsOptions) {
  const { store, fleet, models, run, weightOf, log, tickMs = 1_000 } = options
  const { clock = { now: Date.now }, slots = 256, slotsPerModel = 32 } = options
  const { steady = clock } = options
  const queue = openQueue({ weightOf })
  const waiting = openWaitingCalls({ queue })
  const rankOf = openArrivals(clock)
  const recorder = openRecorder({ store, log })
  const pace = openJobDurations()
  const waiters = openWaiters({ store: store.jobs, log })
  const failed = (thrown: unknown) => log.error('A follower of jobs failed', {}, thrown)
  const live = openLiveRuns({ now: () => clock.now(), failed })
  const refill = openRefill({ store: store.jobs, queue, log, filled: modelId => dispatch.look(modelId) })
  const due = openDueTimer({
    store: store.jobs,
    clock,
    log,
    woken: enqueue,
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
  const facts = openJobFacts({ fleet, models, queue, live, pace, dispatch, clock })
  const tick = setInterval(() => {
    due.tick()
    refill.wake()
    dispatch.checkAllModels()
  }, tickMs).unref()

  /** Adds jobs to the queue. */
  function enqueue(jobs: readonly WaitingJob[]): void {
    for (const job of jobs) queue.offer(job)
    for (const modelId of new Set(jobs.map(job => job.modelId))) dispatch.look(modelId)
  }

  function ended(job: JobKey): void {
    waiters.tell(job)
    live.moved(job)
  }

  /** Settles when what waited before has been counted. */
  const begun = refill.begin().then(() => {
    due.look()
    dispatch.checkAllModels()
  })

  let draining = false

  /** Takes up nothing more; what runs goes on. */
  async function close(): Promise<void> {
    clearInterval(tick)
    dispatch.close()
    runs.drain()
    await Promise.allSettled([refill.close(), begun, due.close(), sweep.close()])
  }

  return {
    find: (organizationId: string, id: string) => store.jobs.find(organizationId, id),
    wasRemoved: (organizationId: string, id: string) => store.jobs.wasRemoved(organizationId, id),
    findByKey: (...key: Parameters<Store['jobs']['findByKey']>) => store.jobs.findByKey(...key),
    list: (...query: Parameters<Store['jobs']['list']>) => store.jobs.list(...query),
    counts: () => store.jobs.counts(),
    events: {
      after: (...query: Parameters<Store['events']['after']>) => store.events.after(...query),
      last: () => store.events.last(),
    },

    /** Resolves after the commit: from then on the job survives a crash. The same idempotency key finds the same job. */
    async submit({ admitted, ...wanted }: AdmittedJob): Promise<{ job: JobRecord; replayed: boolean }> {
      await begun
      if (draining) throw shuttingDown()
      const { organizationId, tokenId, task, model } = admitted
      const rank = rankOf(wanted.priority)
      const submitted = await store.jobs.submit({ ...wanted, organizationId, tokenId, task, modelId: model.id, rank })
      const { job, replayed } = submitted
      if (replayed) return submitted
      if (job.startBy !== null) due.at(job.startBy)
      if (wanted.notBefore > wanted.createdAt) due.at(wanted.notBefore)
      else enqueue([waitingOf(job)])
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
     * Call it before you look whether the job has ended: an end before the call is not told again.
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
    queued: (those: readonly WaitingJob[]): void => void begun.then(() => enqueue(those)),

    /** Jobs that the store has claimed together with the end of the one before: they run from now on. */
    claimedSuccessors(those: CommitEffects['claimedSuccessors']): void {
      for (const { before, job } of those) runs.goOn(before, job)
    },

    /** Jobs that the store has ended by itself: those that run are told. */
    withdrawn(those: readonly WaitingJob[]): void {
      for (const job of those) {
        const began = runs.has(job.id)
        runs.stop(job.id, new Failure('cancelled', `The job ${job.id} was cancelled with its execution.`))
        queue.remove(job, !began)
        ended(job)
      }
      for (const modelId of new Set(those.map(job => job.modelId))) dispatch.look(modelId)
    },

    /** Jobs with a synchronous caller. */
    calls,
    /** Records of calls that have ended. Close it after the fleet: until then calls may still end. */
    recorder,

    /**
     * A slot of the model that nothing waits for, to ask its engine something beside the work. Undefined: there is none
     * now. Loads nothing; release it soon.
     */
    idleSlot: (modelId: string): Lease | undefined => dispatch.takeFree(modelId),

    /** How the job is doing, as of now. Cheap. */
    progressOf: (job: JobRecord): JobProgress => progressOf(job, facts.ofJob(job)),

    /** What waits for a model, and how long one more job would. Cheap. */
    outlook: (modelId: string): QueueForecast => facts.ofModel(modelId),

    /** What its runs have said, oldest first: the stored ones, and the one under way. */
    logs: (job: JobRecord): Promise<LogLine[]> => allLines(job, { store: store.jobs, live }),

    stats: () => ({ running: dispatch.held(), draining, ...queue.stats() }),

    /**
     * Takes no more jobs, lets those that run finish for `deadlineMs`, then interrupts them and gives them back
     * uncharged.
     */
    async drain(deadlineMs: number): Promise<{ released: number }> {
      draining = true
      await close()
      await Promise.race([runs.done(), delay(deadlineMs, undefined, { ref: false })])
      const released = runs.size
      runs.stopAll(shuttingDown())
      await Promise.race([runs.done(), delay(interruptGraceMs, undefined, { ref: false })])
      await runs.giveBackAll()
      waiters.releaseAll()
      return { released }
    },
  }
}
export type { JobProgress } from './job-progress.ts'
export type Jobs = ReturnType<typeof openJobs>
