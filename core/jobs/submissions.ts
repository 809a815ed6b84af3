import type { Admitted } from '../admission/admission.ts'
import { Failure } from '../failure.ts'
import { heldUntil, type JobRecord, type NewJob, type Resumption, type Store, type WaitingJob } from '../store/store.ts'
import type { DueTimer } from './due-timer.ts'
import type { JobKey } from './live-runs.ts'
import { waitingOf } from './queue.ts'

/** A job to store, for admitted work. */
export type AdmittedJob = Omit<
  NewJob,
  'rank' | 'organizationId' | 'tokenId' | 'task' | 'modelId' | 'region' | 'limits'
> & {
  admitted: Admitted
}

export interface Submitted {
  job: JobRecord
  /** Whether the idempotency key has created it before. */
  replayed: boolean
}

interface SubmissionsOptions {
  store: Pick<Store['jobs'], 'submit' | 'submitAll' | 'held' | 'resume'>
  clock: { now(): number }
  rankOf: (priority: number) => number
  due: Pick<DueTimer, 'at'>
  enqueue: (jobs: readonly WaitingJob[]) => void
  /** Called with each job that is held. */
  held: ((job: JobRecord) => void) | undefined
  /** Called when a job has changed, and when it has ended. */
  moved: (job: JobKey) => void
  ended: (job: JobKey) => void
  /** Resolves when jobs may be stored. Rejects while the server stops. */
  ready: () => Promise<void>
}

export const shuttingDown = () =>
  new Failure('shutting_down', 'This server is shutting down. Retry later.', { retryAfterMs: 5_000 })

/** Stores jobs and queues them once they are stored. */
export function openSubmissions(options: SubmissionsOptions) {
  const { store, clock, rankOf, due, enqueue, held, moved, ended, ready } = options

  function newJobOf({ admitted, ...wanted }: AdmittedJob): NewJob {
    const { organizationId, tokenId, task, model, region, jobLimits } = admitted
    const rank = rankOf(wanted.priority)
    const limits = jobLimits ? { limits: jobLimits } : {}
    return { ...wanted, organizationId, tokenId, task, modelId: model.id, region, rank, ...limits }
  }

  function begin(submitted: Submitted): Submitted {
    const { job, replayed } = submitted
    if (replayed) return submitted
    if (job.startBy !== null) due.at(job.startBy)
    if (job.notBefore === heldUntil) held?.(job)
    else wait(job)
    moved(job)
    return submitted
  }

  /** Queues a pending job, now or when it is due. */
  function wait(job: JobRecord): void {
    if (job.notBefore > job.createdAt) due.at(job.notBefore)
    else enqueue([waitingOf(job)])
  }

  return {
    /**
     * Resolves after the commit: from then on the job survives a crash. The same idempotency key returns the same job.
     */
    async submit(wanted: AdmittedJob): Promise<Submitted> {
      await ready()
      return begin(await store.submit(newJobOf(wanted)))
    },

    /** Submits several jobs in one commit, each as `submit` does: all of them, or none. */
    async submitAll(wanted: readonly AdmittedJob[]): Promise<Submitted[]> {
      await ready()
      return (await store.submitAll(wanted.map(newJobOf))).map(begin)
    },

    /** The held jobs, oldest first. Scans all of them: call it only at the start. */
    held: () => store.held(),

    /** Lets a held job run with its inputs, or fails it. Undefined: it is not held any more, and nothing changes. */
    async resume({ organizationId, id }: JobKey, how: Resumption): Promise<JobRecord | undefined> {
      await ready()
      const job = await store.resume(organizationId, id, how, clock.now())
      if (job?.status === 'pending') {
        wait(job)
        moved(job)
      } else if (job) ended(job)
      return job
    },
  }
}
