import type { Admitted } from '../admission/admission.ts'
import type { JobSpend } from '../admission/spend.ts'
import { Failure } from '../failure.ts'
import {
  deferredUntil,
  type JobRecord,
  type NewJob,
  type Resumption,
  type RowKey,
  type Store,
  type WaitingJob,
  waitingOf,
} from '../store/store.ts'
import type { DueTimer } from './due-timer.ts'

/** A job to store, for admitted work. */
export type AdmittedJob = Omit<
  NewJob,
  'rank' | 'organizationId' | 'tokenId' | 'task' | 'modelId' | 'requestedModel' | 'region' | 'relayed' | 'limits'
> & {
  admitted: Admitted
  /** Its answer is known to need no engine: it waits for no slot and loads no model. */
  withoutEngine?: boolean | undefined
}

export interface Submitted {
  job: JobRecord
  /** Whether the idempotency key has created it before. */
  replayed: boolean
}

interface SubmissionsOptions {
  store: Pick<Store['jobs'], 'submit' | 'submitAll' | 'deferred' | 'resume'>
  clock: { now(): number }
  rankOf: (priority: number) => number
  due: Pick<DueTimer, 'at'>
  enqueue: (jobs: readonly WaitingJob[]) => void
  beginWithoutEngine: (job: WaitingJob) => void
  spend: Pick<JobSpend, 'hold' | 'release'>
  /** Called with each job that is deferred. */
  deferred: ((job: JobRecord) => void) | undefined
  /** Called when a job has changed, and when it has ended. */
  moved: (job: RowKey) => void
  ended: (job: RowKey) => void
  /** Resolves when jobs may be stored. Rejects while the server stops. */
  ready: () => Promise<void>
}

export const submissionsClosed = () =>
  new Failure('shutting_down', 'This server is shutting down. Retry later.', { retryAfterMs: 5_000 })

/** Stores jobs and queues them once they are stored. */
export function openSubmissions(options: SubmissionsOptions) {
  const { store, clock, rankOf, due, enqueue, beginWithoutEngine, spend, deferred, moved, ended, ready } = options

  function newJobOf({ admitted, ...job }: AdmittedJob): NewJob {
    const { withoutEngine: _, ...wanted } = job
    const { organizationId, tokenId, task, model, requestedModel, region, relayed = false, jobLimits, hold } = admitted
    const rank = rankOf(wanted.priority)
    const limits = jobLimits ? { limits: jobLimits } : {}
    const named = { modelId: model.id, requestedModel }
    return { ...wanted, organizationId, tokenId, task, ...named, region, relayed, rank, held: hold, ...limits }
  }

  /** Holds what the jobs may cost while they are stored, and until their ends if they are. */
  async function holding(wanted: readonly AdmittedJob[], submit: () => Promise<Submitted[]>): Promise<Submitted[]> {
    const release = (ids: readonly string[]) => {
      for (const id of ids) spend.release(id)
    }
    const all = wanted.map(({ id }) => id)
    try {
      for (const { id, admitted } of wanted) spend.hold(id, admitted.spender, admitted.hold)
      const submitted = await submit()
      // The job of a repeated key holds its own; this one was not stored.
      release(all.filter((id, at) => submitted[at]?.job.id !== id))
      return submitted
    } catch (thrown) {
      release(all)
      throw thrown
    }
  }

  /** Queues a job that is stored. A replayed one is queued already. */
  function begin(submitted: Submitted, withoutEngine = false): Submitted {
    const { job, replayed } = submitted
    if (replayed) return submitted
    if (job.startBy !== null) due.at(job.startBy)
    if (job.notBefore === deferredUntil) deferred?.(job)
    else if (withoutEngine && job.notBefore <= job.createdAt) beginWithoutEngine(waitingOf(job))
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
    begin,

    /**
     * Resolves after the commit: from then on the job survives a crash. The same idempotency key returns the same job.
     */
    async submit(wanted: AdmittedJob): Promise<Submitted> {
      await ready()
      const [submitted] = await holding([wanted], async () => [await store.submit(newJobOf(wanted))])
      return begin(submitted!, wanted.withoutEngine)
    },

    /** Submits several jobs in one commit, each as `submit` does: all of them, or none. */
    async submitAll(wanted: readonly AdmittedJob[]): Promise<Submitted[]> {
      await ready()
      return (await holding(wanted, () => store.submitAll(wanted.map(newJobOf)))).map((one, at) =>
        begin(one, wanted[at]!.withoutEngine),
      )
    },

    /**
     * Submits jobs that `add` stores together with rows of their owner, in one commit. Undefined if `add` stores nothing.
     * Throws as `submit` does.
     */
    async submitWith(
      wanted: readonly AdmittedJob[],
      add: (jobs: NewJob[]) => Promise<JobRecord[] | undefined>,
    ): Promise<JobRecord[] | undefined> {
      await ready()
      let added: JobRecord[] | undefined
      const submitted = await holding(wanted, async () => {
        added = await add(wanted.map(newJobOf))
        return (added ?? []).map(job => ({ job, replayed: false }))
      })
      for (const one of submitted) begin(one)
      return added
    },

    /** The deferred jobs, oldest first. Scans all of them: call it only at the start. */
    deferred: () => store.deferred(),

    /** Lets a deferred job run with its inputs, or fails it. Undefined: it is not deferred any more, and nothing changes. */
    async resume({ organizationId, id }: RowKey, how: Resumption): Promise<JobRecord | undefined> {
      await ready()
      const job = await store.resume(organizationId, id, how, clock.now())
      if (job?.status === 'pending') {
        wait(job)
        moved(job)
      } else if (job && job.finishedAt !== null) ended(job)
      return job
    },
  }
}
