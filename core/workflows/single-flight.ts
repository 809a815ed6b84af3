import type { JobClaim, JobRecord } from '../store/store.ts'
import type { ExecutionStore } from '../store/workflows.ts'

/** When a job asked: before it was queued, or when it began to run. Whoever began a flight at a stage ends it there. */
export type Stage = 'queued' | 'running'

/** The job that does some work, until its result is stored or will not be. */
interface Flight {
  jobId: string
  stage: Stage
  ended: PromiseWithResolvers<void>
}

/**
 * Has work with the same key done once at a time, and takes its result from the store where it has been done before.
 * Both before a job is queued (node-queueing.ts) and before it runs (node-run.ts), over the same flights: what waits in
 * the store, after a restart for example, reaches the queue without being asked.
 */
export function openSingleFlight(store: Pick<ExecutionStore, 'cached' | 'reuse'>) {
  const flights = new Map<string, Flight>()
  /** The keys by stage and job. */
  const keys = new Map<string, string>()

  function end(jobId: string, stage: Stage): void {
    const key = keys.get(`${stage} ${jobId}`)
    if (key === undefined) return
    keys.delete(`${stage} ${jobId}`)
    flights.get(key)?.ended.resolve()
    flights.delete(key)
  }

  return {
    /** Resolves when the other job that does this work has ended; undefined where there is none. */
    other(jobId: string, key: string): Promise<void> | undefined {
      const flight = flights.get(key)
      return flight?.jobId === jobId ? undefined : flight?.ended.promise
    },

    /**
     * Makes the job the one that does the work; call it in the same turn of the event loop in which `other` is undefined,
     * and `end` when the job has ended. Resolves with false where its node has taken over a stored result instead:
     * nothing is left to do, nor to end. Rejects with what the store throws; then there is nothing to end either.
     */
    async begin(
      { id, organizationId }: JobRecord,
      key: string,
      stage: Stage,
      claim?: Pick<JobClaim, 'boot' | 'claims'>,
    ): Promise<boolean> {
      // It began before it was queued, and since then nobody else can have done the work.
      if (flights.get(key)?.jobId === id) return true
      flights.set(key, { jobId: id, stage, ended: Promise.withResolvers() })
      keys.set(`${stage} ${id}`, key)
      let taken = false
      try {
        const before = await store.cached(organizationId, key)
        const from = before === undefined ? undefined : { jobId: before, at: Date.now(), ...(claim ? { claim } : {}) }
        taken = from !== undefined && (await store.reuse(organizationId, id, from))
      } catch (thrown) {
        end(id, stage)
        throw thrown
      }
      if (taken) end(id, stage)
      return !taken
    },

    /** The result of the job is stored, or there will be none. Does nothing where the job began no flight at this stage. */
    end,
  }
}
export type SingleFlight = ReturnType<typeof openSingleFlight>
