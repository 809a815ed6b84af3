import type { JobClaim, JobRecord } from '../store/store.ts'
import type { ExecutionStore } from '../store/workflows.ts'

/**
 * When a job checked the cache: before it was queued, or when it started. A flight is ended at the stage that began it.
 */
export type Stage = 'queued' | 'running'

/** The job that does the work of a key, until its result is stored or it has ended without one. */
interface Flight {
  jobId: string
  stage: Stage
  ended: PromiseWithResolvers<void>
}

/**
 * Lets only one job at a time do the work of a key, and reuses a stored result if there is one. Used both before a job
 * is queued (node-queue.ts) and before it runs (node-run.ts), with the same flights: jobs read from the store, for
 * example after a restart, enter the queue without the first check.
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
    /** Resolves when the other job that does this work has ended; undefined if there is none. */
    other(jobId: string, key: string): Promise<void> | undefined {
      const flight = flights.get(key)
      return flight?.jobId === jobId ? undefined : flight?.ended.promise
    },

    /**
     * Makes the job the one that does the work. Call it in the same event loop turn in which `other` returned
     * undefined, and call `end` when the job has ended. Resolves with false if its node reuses a stored result instead:
     * then there is no work, and no `end` to call. Rejects with the store's error; then there is no `end` to call
     * either.
     */
    async begin(
      { id, organizationId }: JobRecord,
      key: string,
      stage: Stage,
      claim?: Pick<JobClaim, 'boot' | 'claims'>,
    ): Promise<boolean> {
      // The flight began before the job was queued, and no other job can have done the work since then.
      if (flights.get(key)?.jobId === id) return true
      flights.set(key, { jobId: id, stage, ended: Promise.withResolvers() })
      keys.set(`${stage} ${id}`, key)
      let reused = false
      try {
        const before = await store.cached(organizationId, key)
        const from = before === undefined ? undefined : { jobId: before, at: Date.now(), ...(claim ? { claim } : {}) }
        reused = from !== undefined && (await store.reuse(organizationId, id, from))
      } catch (thrown) {
        end(id, stage)
        throw thrown
      }
      if (reused) end(id, stage)
      return !reused
    },

    /**
     * Call it when the result of the job is stored, or it has ended without one. Ignored if the job began no flight at
     * this stage.
     */
    end,
  }
}
export type SingleFlight = ReturnType<typeof openSingleFlight>
