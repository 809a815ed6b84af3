import { setTimeout as delay } from 'node:timers/promises'
import { type JobSpend, noSpend } from '../admission/spend.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import { pick } from '../members.ts'
import type { Fleet } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import {
  type JobRecord,
  type LogLine,
  type RowKey,
  rankAt,
  type Store,
  type Usage,
  type WaitingJob,
  waitingOf,
} from '../store/store.ts'
import type { CommitEffects } from '../store/workflows.ts'
import { openSweep } from '../sweep.ts'
import type { RunJob } from '../tasks/run-job.ts'
import type { CallsElsewhere } from './call.ts'
import { openCallWait } from './call-wait.ts'
import { openCalls } from './calls.ts'
import { openDispatch } from './dispatch.ts'
import { openDueTimer } from './due-timer.ts'
import { openJobDurations } from './job-durations.ts'
import { openJobFacts, type QueueForecast } from './job-facts.ts'
import type { FallbackOfJob } from './job-fallbacks.ts'
import { firstWaitsFor, type JobProgress, progressOf, type WaitingFor } from './job-progress.ts'
import { allLines, openLiveRuns } from './live-runs.ts'
import { openQueue } from './queue.ts'
import { openQueuedFallbacks } from './queued-fallbacks.ts'
import { openRecorder } from './recorder.ts'
import { openRefill } from './refill.ts'
import { openRuns } from './runs.ts'
import { openSlotRequests } from './slot-requests.ts'
import { openSubmissions, submissionsClosed } from './submissions.ts'
import { openSuspects } from './suspects.ts'
import { openWaiters } from './waiters.ts'
import { openWaitingCalls } from './waiting-calls.ts'

/**
 * Gives each job its rank: microseconds of its arrival, minus the head start of its priority. No two arrivals are
 * equal, and none is before an earlier one, whatever happens to the clock while the server runs.
 */
function openArrivals(clock: { now(): number }): (priority: number) => number {
  let last = 0
  return priority => {
    last = Math.max(last + 1, clock.now() * 1_000)
    return rankAt(last, priority)
  }
}

export interface JobsOptions {
  store: Store
  fleet: Pick<Fleet, 'take' | 'demandChanged' | 'connect' | 'activity' | 'slots' | 'snapshot'>
  /** The current configuration, including disabled models. */
  models: { find(id: string): Model | undefined }
  run: RunJob
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  /** Called with each job that was submitted as deferred, for the owner that resumes it. */
  deferred?: (job: JobRecord) => void
  /** Finds the model that does a job whose model has failed it, or for which it waits too long; absent without fallbacks. */
  fallbackOf?: FallbackOfJob
  /** Called with what work of a token has used, when it has ended. */
  used?: (tokenId: string, usage: Usage) => void
  /** Calls that run in other processes. */
  elsewhere?: CallsElsewhere | undefined
  /** Throws a Failure if the model may not do a call of the token any more, which may have waited for long. */
  mayBegin?: (model: Model, tokenId: string) => void
  /** The organizations whose jobs are not started. */
  suspended?: () => ReadonlySet<string>
  log: Log
  /** Holds and settles what jobs cost; absent where nothing has a price. */
  spend?: JobSpend
  clock?: { now(): number }
  /** The clock by which idempotency keys expire; `clock` if absent. */
  steady?: { now(): number }
  /** How many slots jobs may occupy at once, in total and of one model. */
  slots?: number
  slotsPerModel?: number
  /** A call without a limit of its own is refused when its wait is expected to take longer, milliseconds. */
  holdMs?: number
  /** How often to look for work that no wake-up has announced, milliseconds. */
  tickMs?: number
}

/** How many expired jobs are removed at once. */
const sweptAtOnce = 100
/** How long interrupted runs may take to end in a drain before their jobs are released, milliseconds. */
const interruptGraceMs = 2_000
/** The same where clients wait for the other server. What ends later changes nothing. */
const leaveGraceMs = 50
/** How often the end of jobs is looked for that another server runs, milliseconds. */
const pollMs = 100

/**
 * Durable jobs: submitted with a commit, run in a fair order when a slot is free, ended exactly once. Starts at once
 * with the jobs in the store.
 */
export function openJobs(options: JobsOptions) {
  const { store, fleet, models, run, weightOf, used = () => {}, log, tickMs = 1_000, holdMs = 600_000 } = options
  const { clock = { now: Date.now }, slots = 256, spend = noSpend } = options
  // A few slots are left for the jobs of other models.
  const { slotsPerModel = Math.ceil(slots * 0.98) } = options
  const { steady = clock, suspended = () => new Set<string>(), fallbackOf = () => Promise.resolve(undefined) } = options
  const queue = openQueue({ weightOf, suspended })
  const waiting = openWaitingCalls({ queue })
  const rankOf = openArrivals(clock)
  const recorder = openRecorder({ store, log })
  const durations = openJobDurations()
  const suspects = openSuspects()
  const waiters = openWaiters({ store: store.jobs, log })
  const failed = (thrown: unknown) => log.error('A follower of jobs failed', {}, thrown)
  const live = openLiveRuns({ now: () => clock.now(), failed })
  const refill = openRefill({ store: store.jobs, queue, log, filled: modelId => dispatch.check(modelId) })
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
    durations,
    suspects,
    used,
    log,
    clock,
    dispatch: () => dispatch,
    suspended,
    settled: (id, settlement) => spend.settle(id, { ...settlement, isStored: true }),
    ended,
    delayed: due.at,
    fallbackOf,
  })
  const dispatch = openDispatch({
    fleet,
    find: id => models.find(id),
    queue,
    calls: waiting,
    refill,
    suspects,
    log,
    begin: (turn, slot) => runs.begin(turn, slot),
    jobsRefused: (modelId, failure) => queuedFallbacks.refused(modelId, failure),
    unwritten: () => runs.size - dispatch.held(),
    slots,
    slotsPerModel,
  })
  const queuedFallbacks = openQueuedFallbacks({
    queue,
    store: store.jobs,
    find: id => models.find(id),
    activity: fleet.activity,
    fallbackOf,
    clock,
    refusal: modelId => dispatch.refusal(modelId),
    giveUp: (job, failure) => dispatch.giveUp(job, failure),
    log,
  })
  const sweep = openSweep({
    sweep: () => store.jobs.sweep(clock.now(), sweptAtOnce, steady.now()),
    // Longer while jobs run, so that they go first.
    pauseMs: () => (runs.size > 0 ? 1_000 : 20),
    log,
    failed: 'Expired jobs could not be removed',
  })
  const holding = { rankOf, spend, holdMs, elsewhere: options.elsewhere, mayBegin: options.mayBegin, log }
  const calls = openCalls({ fleet, dispatch, queue, waiting, recorder, durations, suspects, used, ...holding })
  const { wait } = openCallWait({ fleet, dispatch, queue, waiting, rankOf, holdMs })
  const find = (id: string) => models.find(id)
  const slotRequests = openSlotRequests({ dispatch, queue, durations, wait, find, mayBegin: options.mayBegin })
  const facts = openJobFacts({ fleet, models, queue, live, durations, dispatch, clock })
  const tick = setInterval(() => {
    due.tick()
    refill.wake()
    dispatch.checkAllModels()
    queuedFallbacks.tick()
  }, tickMs).unref()

  /** Adds jobs to the queue. */
  function enqueue(jobs: readonly WaitingJob[]): void {
    for (const job of jobs) queue.offer(job)
    for (const modelId of new Set(jobs.map(job => job.modelId))) dispatch.check(modelId)
  }

  function ended(job: RowKey): void {
    spend.release(job.id)
    suspects.ended(job.id)
    waiters.announce(job)
    live.moved(job)
  }

  /** Takes a job that was cancelled at this time out of the queue, or stops its run. */
  function stopCancelled(job: JobRecord, at: number): void {
    runs.stop(job.id, new Failure('cancelled', `The job ${job.id} was cancelled.`))
    queue.remove(waitingOf(job), job.finishedAt === at && job.startedAt === null && job.notBefore <= at)
    dispatch.check(job.modelId)
    ended(job)
  }

  /** Resolves when the pending jobs of the store have been counted. */
  const counted = refill.begin().then(() => {
    due.check()
    dispatch.checkAllModels()
  })

  /** Whether the server stops, and whether another one starts what is submitted from now on. */
  let [draining, quiet] = [false, false]
  const submissions = openSubmissions({
    store: store.jobs,
    clock,
    rankOf,
    due,
    enqueue,
    beginWithoutEngine: job => quiet || runs.beginWithoutEngine(job),
    spend,
    deferred: options.deferred,
    moved: job => live.moved(job),
    ended,
    async ready() {
      await counted
      if (draining) throw submissionsClosed()
    },
  })

  /** Starts nothing more; running jobs continue. */
  async function close(): Promise<void> {
    clearInterval(tick)
    dispatch.close()
    runs.drain()
    await Promise.allSettled([refill.close(), counted, due.close(), sweep.close()])
  }

  return {
    ...pick(store.jobs, 'find', 'wasRemoved', 'findByKey', 'list', 'excerpts', 'counts', 'recentRuns'),
    events: pick(store.events, 'after', 'last'),

    ...submissions,

    /**
     * Cancels a job. It is cancelled once this resolves, then its run is stopped. Undefined: the organization has no
     * such job. Throws Failure `job_already_finished`.
     */
    async cancel(organizationId: string, id: string): Promise<JobRecord | undefined> {
      await counted
      const now = clock.now()
      const job = await store.jobs.cancel(organizationId, id, now)
      if (job) stopCancelled(job, now)
      return job
    },

    /**
     * Resolves with the job when it ends in this process, or with undefined when the signal aborts or the server
     * drains. With the organization of the job it is also seen when it ends in another server, after `leave`. Call it before
     * you read whether the job has ended: an end before the call is not announced again.
     */
    wait: (id: string, signal: AbortSignal, organizationId?: string): Promise<JobRecord | undefined> =>
      waiters.wait(id, signal, organizationId),

    /** Removes a job that has ended. Undefined: no such job. Throws Failure `conflict` while it waits or runs. */
    async remove(organizationId: string, id: string): Promise<true | undefined> {
      const removed = await store.jobs.remove(organizationId, id, clock.now())
      if (removed) {
        // A cancellation in the same commit finds the job no more, and has not stopped its run.
        runs.stop(id, new Failure('cancelled', `The job ${id} was cancelled.`))
        ended({ id, organizationId })
      }
      return removed
    },

    /**
     * Calls the listener after every change of the job, its progress and its log, at most once per event loop turn,
     * until the returned function is called.
     */
    follow: live.follow,
    /** The unfinished images that the current run of the job has reported. Cheap. */
    previewsOf: (id: string) => live.find(id)?.previews ?? [],
    /** The same for every change of state of the organization's jobs. */
    followOrganization: live.followOrganization,

    /** Queues jobs that a server before this one has stored here. */
    async storedElsewhere(stored: readonly RowKey[]): Promise<void> {
      await counted
      for (const { organizationId, id } of stored) {
        const job = await store.jobs.find(organizationId, id)
        if (job?.status === 'pending') submissions.begin({ job, replayed: false })
      }
    },

    /** Stops a job that a server before this one has cancelled here at this time. */
    async cancelledElsewhere(organizationId: string, id: string, at: number): Promise<void> {
      await counted
      const job = await store.jobs.find(organizationId, id)
      if (job?.status === 'cancelled') stopCancelled(job, at)
    },

    /** Queues jobs that the store has created itself. */
    queued: (jobs: readonly WaitingJob[]): void => void counted.then(() => enqueue(jobs)),

    /** Runs jobs that the store has claimed in the commit of their predecessor's end. */
    claimedSuccessors(jobs: CommitEffects['claimedSuccessors']): void {
      for (const { before, job } of jobs) runs.runSuccessor(before, job)
    },

    /** Stops the runs of jobs that the store has set aside. */
    setAside(jobs: CommitEffects['setAside']): void {
      for (const job of jobs) {
        runs.stop(job.id, new Failure('cancelled', `The job ${job.id} waits for something else.`))
        live.moved(job)
      }
    },

    /** Handles jobs that the store has ended itself: stops those that run. */
    withdrawn(jobs: readonly WaitingJob[]): void {
      for (const job of jobs) {
        const began = runs.has(job.id)
        runs.stop(job.id, new Failure('cancelled', `The job ${job.id} was cancelled with its execution.`))
        queue.remove(job, !began)
        ended(job)
      }
      for (const modelId of new Set(jobs.map(job => job.modelId))) dispatch.check(modelId)
    },

    /** Jobs with a synchronous caller. */
    calls,
    /** Slots for calls of other processes. */
    slotRequests,
    /** Records of calls that have ended. Close it after the fleet: until then calls may still end. */
    recorder,

    /**
     * Takes an unused slot of the model, for a short request to its engine besides the queue. Undefined: none is free
     * now. Loads nothing; release it soon.
     */
    idleSlot: dispatch.takeFree,

    /** The current progress of the job. Cheap. */
    progressOf: (job: JobRecord): JobProgress => progressOf(job, facts.ofJob(job)),

    /** How many entries wait for a model, and when one more job would start. Cheap. */
    queueForecast: (modelId: string): QueueForecast => facts.ofModel(modelId),

    /** Why the first entry in the queue of the model has not begun. Only of a queue with entries. Cheap. */
    firstWaitsFor: (modelId: string): WaitingFor => firstWaitsFor(modelId, facts.ofFirst(modelId)),

    /** The log lines of its runs, oldest first: the stored ones, and those of the current run. */
    logs: (job: JobRecord): Promise<LogLine[]> => allLines(job, { store: store.jobs, live }),

    stats: () => ({ running: dispatch.held(), draining, ...queue.stats() }),

    /**
     * Before the store is handed over: starts no more jobs and lets running ones finish for `deadlineMs`. Jobs that are
     * submitted meanwhile are stored, for the other server.
     */
    async quiesce(deadlineMs: number): Promise<void> {
      quiet = true
      await close()
      await Promise.race([runs.done(), delay(deadlineMs, undefined, { ref: false })])
    },
    /**
     * Interrupts the jobs that still run after `quiesce`; the store puts them back into the queue, for the other server.
     * Calls go on, and so do those who wait for a job or follow it: they learn what the other server does with it.
     */
    async leave(): Promise<void> {
      runs.stopAll(submissionsClosed())
      await Promise.race([runs.done(), delay(leaveGraceMs, undefined, { ref: false })])
      waiters.poll(pollMs)
      setInterval(() => live.movedElsewhere(), pollMs).unref()
    },

    /**
     * Starts no more jobs, lets running ones finish for `deadlineMs`, then interrupts them and releases their jobs
     * uncharged.
     */
    async drain(deadlineMs: number): Promise<{ released: number }> {
      draining = true
      await close()
      await Promise.race([runs.done(), delay(deadlineMs, undefined, { ref: false })])
      const released = runs.size
      runs.stopAll(submissionsClosed())
      await Promise.race([runs.done(), delay(interruptGraceMs, undefined, { ref: false })])
      await runs.giveBackAll()
      waiters.releaseAll()
      return { released }
    },
  }
}
export type Jobs = ReturnType<typeof openJobs>
