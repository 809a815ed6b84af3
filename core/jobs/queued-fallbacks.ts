import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import { fallbackReason, isFor } from '../models/fallbacks.ts'
import type { Fleet } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import type { JobRecord, Store, WaitingJob } from '../store/store.ts'
import { type FallbackOfJob, JobWaitsTooLong } from './job-fallbacks.ts'
import type { Queue } from './queue.ts'

/** For how long a job is left alone for which there is no fallback now, milliseconds. */
const againMs = 10_000

/**
 * Moves jobs in the queue to fallbacks of their model: when it cannot be started, and when they wait longer than a fallback
 * allows. Lines of a batch have no hurry, so they do not leave for a wait. A job that no fallback may do waits on.
 */
export function openQueuedFallbacks(options: {
  queue: Pick<Queue, 'jobsOf' | 'models'>
  store: Pick<Store['jobs'], 'find'>
  find: (modelId: string) => Model | undefined
  activity: Fleet['activity']
  fallbackOf: FallbackOfJob
  clock: { now(): number }
  /** Why the fleet refuses the jobs of the model now; undefined if it does not. */
  refusal: (modelId: string) => Failure | undefined
  /** Lets a waiting job fail with this, so that it is moved; false: none may fail now. */
  giveUp: (job: WaitingJob, failure: Failure) => boolean
  log: Log
}) {
  const { queue, store, find, activity, fallbackOf, clock, refusal, giveUp, log } = options
  /** When the jobs of each model are looked at again, by the reason for which they may be moved. */
  const later = { failed: new Map<string, Map<string, number>>(), wait: new Map<string, Map<string, number>>() }
  const passing = new Set<string>()

  /** Moves the jobs for which `why` says so; a number says when it should be asked again. */
  async function pass(
    modelId: string,
    reason: keyof typeof later,
    why: (job: JobRecord) => Failure | number | undefined,
  ): Promise<void> {
    const key = `${reason} ${modelId}`
    if (passing.has(key)) return
    passing.add(key)
    const before = later[reason].get(modelId)
    const after = new Map<string, number>()
    later[reason].set(modelId, after)
    try {
      for (const waiting of queue.jobsOf(modelId)) {
        const { id, organizationId } = waiting
        const at = before?.get(id)
        if (at !== undefined && clock.now() < at) {
          after.set(id, at)
          continue
        }
        const job = await store.find(organizationId, id)
        if (job?.status !== 'pending' || job.modelId !== modelId) continue
        const failure = why(job)
        if (typeof failure === 'number') after.set(id, failure)
        if (!(failure instanceof Failure)) continue
        if (reason === 'failed' && !refusal(modelId)) return
        if (!(await fallbackOf(job, failure))) after.set(id, clock.now() + againMs)
        else if (!giveUp(waiting, failure)) return
      }
    } catch (thrown) {
      if (!Failure.from(thrown).retryable) log.error('Fallbacks of jobs could not be found', { model: modelId }, thrown)
    } finally {
      passing.delete(key)
      if (after.size === 0) later[reason].delete(modelId)
    }
  }

  function lateJobs(modelId: string, waitMs: number): void {
    const { status, etaMs, etaIsMeasured } = activity(modelId)
    const expectedMs = status !== 'warm' && etaIsMeasured && etaMs !== null ? etaMs : 0
    void pass(modelId, 'wait', job => {
      if (job.class === 'batch' || job.fallbackReason !== null) return clock.now() + againMs
      const now = clock.now()
      const lateAt = Math.max(job.createdAt, job.notBefore) + waitMs
      if (now + expectedMs > lateAt) return new JobWaitsTooLong(modelId, now + expectedMs - lateAt + waitMs)
      return Math.min(lateAt, now + againMs)
    })
  }

  /** A start that failed counts like an attempt of a job. */
  function refused(modelId: string, failure: Failure): void {
    const { fallbacks = [] } = find(modelId) ?? {}
    if (fallbackReason(failure, false) !== 'failed' || !fallbacks.some(one => isFor(one, 'failed'))) return
    const { failed_starts: starts } = failure.facts ?? {}
    void pass(modelId, 'failed', job => (typeof starts === 'number' && starts < job.maxAttempts ? undefined : failure))
  }

  return {
    /** The fleet refuses the jobs of the model for this reason. */
    refused,
    /** Looks at jobs that wait too long, and at those that came while their model is refused. Call it about once a second. */
    tick(): void {
      for (const modelId of queue.models()) {
        const failure = refusal(modelId)
        if (failure) refused(modelId, failure)
        const waits = (find(modelId)?.fallbacks ?? []).flatMap(({ wait }) => wait ?? [])
        if (waits.length > 0) lateJobs(modelId, Math.min(...waits))
      }
    },
  }
}
