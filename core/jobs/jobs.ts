import { setTimeout as delay } from 'node:timers/promises'
import type { Admitted } from '../admission/admission.ts'
import { Failure } from '../failure.ts'
import type { Lease } from '../models/fleet.ts'
import type { JobRecord, LogLine, NewJob, WaitingJob } from '../store/store.ts'
import type { Moves } from '../store/workflows.ts'
import type { Outlook } from './facts.ts'
import { allLines } from './log-lines.ts'
import { type JobsOptions, openParts } from './parts.ts'
import { waitingOf } from './queue.ts'
import { openJobReads } from './reads.ts'
import { type Standing, standingOf } from './standing.ts'

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
  const { store } = options
  const parts = openParts(options)
  const { queue, calls, recorder, rankOf, waiters, live, due, runs, dispatch, facts, clock, begun } = parts
  let draining = false

  return {
    ...openJobReads(store),

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
      else parts.wait([waitingOf(job)])
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
      parts.ended(job)
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
    queued: (those: readonly WaitingJob[]): void => void begun.then(() => parts.wait(those)),

    /** Jobs that the store has claimed together with the end of the one before: they run from now on. */
    handedOn(those: Moves['handedOn']): void {
      for (const { before, job } of those) runs.goOn(before, job)
    },

    /** Jobs that the store has ended by itself: those that run are told. */
    withdrawn(those: readonly WaitingJob[]): void {
      for (const job of those) {
        const began = runs.has(job.id)
        runs.stop(job.id, new Failure('cancelled', `The job ${job.id} was cancelled with its execution.`))
        queue.remove(job, !began)
        parts.ended(job)
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
      await parts.close()
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
export type { JobsOptions } from './parts.ts'
export type { Standing } from './standing.ts'
export type Jobs = ReturnType<typeof openJobs>
