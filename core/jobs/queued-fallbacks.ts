import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import { fallbackReason, isFor } from '../models/fallbacks.ts'
import type { Fleet } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import { type Store, type WaitingJob, type WaitingJobDetails, waitingOf } from '../store/store.ts'
import { type FallbackOfJob, JobWaitsTooLong } from './job-fallbacks.ts'
import { type LookAgain, type LookBudget, openLaneScans } from './lane-scans.ts'
import type { Queue } from './queue.ts'

/** For how long a job is left alone for which there is no fallback now, milliseconds. */
const againMs = 10_000
/** How many waiting jobs of a model a tick reads, and for how many of them it looks for a fallback. */
const perTick: LookBudget = { rows: 512, jobs: 64 }

/**
 * Moves jobs in the queue to fallbacks of their model: when it cannot be started, and when they wait longer than a fallback
 * allows. Lines of a batch have no hurry, so they do not leave for a wait. A job that no fallback may do waits on, and those
 * behind it are looked at too, however many there are.
 */
export function openQueuedFallbacks(options: {
  queue: Pick<Queue, 'lanesOf' | 'models'>
  store: Pick<Store['jobs'], 'find' | 'waitingDetails'>
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
  type Reason = 'failed' | 'wait'
  /** By model and reason, of models that have fallbacks for it and waiting jobs. */
  const scans = new Map<string, ReturnType<typeof openLaneScans>>()
  const scanning = new Set<string>()

  /** Moves the jobs for which `why` says so; otherwise it says when to ask again. */
  async function scan(
    modelId: string,
    reason: Reason,
    why: (job: WaitingJobDetails) => Failure | LookAgain,
    failedStarts?: number,
  ): Promise<void> {
    const key = `${reason} ${modelId}`
    if (scanning.has(key)) return
    scanning.add(key)
    let lanes = scans.get(key)
    if (!lanes) scans.set(key, (lanes = openLaneScans({ read: store.waitingDetails, now: () => clock.now() })))
    const waiting = queue.lanesOf(modelId).filter(lane => reason === 'failed' || lane.class !== 'batch')
    try {
      await lanes.continue(waiting, { budget: { ...perTick }, failedStarts }, async (details, budget) => {
        const failure = why(details)
        if (!(failure instanceof Failure)) return failure
        budget.jobs--
        const job = await store.find(details.organizationId, details.id)
        if (job?.status !== 'pending' || job.modelId !== modelId) return undefined
        if (reason === 'failed' && !refusal(modelId)) return 'stop'
        if (!(await fallbackOf(job, failure))) return { at: clock.now() + againMs }
        return giveUp(waitingOf(details), failure) ? undefined : 'stop'
      })
    } catch (thrown) {
      if (!Failure.from(thrown).retryable) log.error('Fallbacks of jobs could not be found', { model: modelId }, thrown)
    } finally {
      scanning.delete(key)
    }
  }

  function lateJobs(modelId: string, waitMs: number): void {
    const { status, etaMs, etaIsMeasured } = activity(modelId)
    const expectedMs = status !== 'warm' && etaIsMeasured && etaMs !== null ? etaMs : 0
    void scan(modelId, 'wait', ({ since, fallbackReason: moved }) => {
      const now = clock.now()
      if (moved !== null) return { at: Number.POSITIVE_INFINITY }
      const lateAt = since + waitMs
      if (now + expectedMs > lateAt) return new JobWaitsTooLong(modelId, now + expectedMs - lateAt + waitMs)
      // A load may take longer than was expected.
      return { at: Math.min(lateAt, now + againMs) }
    })
  }

  /** A start that failed counts like an attempt of a job. */
  function refused(modelId: string, failure: Failure): void {
    const { fallbacks = [] } = find(modelId) ?? {}
    if (fallbackReason(failure, false) !== 'failed' || !fallbacks.some(one => isFor(one, 'failed'))) return
    const { failed_starts: starts } = failure.facts ?? {}
    const failedStarts = typeof starts === 'number' ? starts : Number.POSITIVE_INFINITY
    const why = ({ maxAttempts }: WaitingJobDetails) =>
      failedStarts < maxAttempts ? { failedStarts: maxAttempts } : failure
    void scan(modelId, 'failed', why, failedStarts)
  }

  return {
    /** The fleet refuses the jobs of the model for this reason. */
    refused,
    /** Looks at jobs that wait too long, and at those that came while their model is refused. Call it about once a second. */
    tick(): void {
      const models = queue.models()
      const needed = new Set<string>()
      for (const modelId of models) {
        const failure = refusal(modelId)
        if (failure) needed.add(`failed ${modelId}`)
        if (failure) refused(modelId, failure)
        const waits = (find(modelId)?.fallbacks ?? []).flatMap(({ wait }) => wait ?? [])
        if (waits.length === 0) continue
        needed.add(`wait ${modelId}`)
        lateJobs(modelId, Math.min(...waits))
      }
      // The next refusal begins at the first job.
      for (const key of scans.keys()) if (!needed.has(key) && !scanning.has(key)) scans.delete(key)
    },
  }
}
