import { once } from 'node:events'
import type { JobRecord } from '../store/store.ts'
import type { ExecutionStore } from '../store/workflows.ts'

/**
 * The last look before the work of a node is done: whether it has been done meanwhile, or is being done. Most jobs were
 * looked at before they were queued (gate.ts); those that had waited when the server started come from the store.
 */
export function openSameWork(store: Pick<ExecutionStore, 'cached' | 'reuse'>) {
  /** The jobs under way by the key of their work, until their results are there or will not be. */
  const making = new Map<string, PromiseWithResolvers<void>>()
  const keys = new Map<string, string>()

  return {
    /**
     * Resolves when this job is the one that does the work; then tell its end. Rejects with the reason of the signal:
     * also where the node has taken over a result, because then there is nothing left to run.
     */
    async begin(job: JobRecord, key: string, signal: AbortSignal): Promise<void> {
      const { organizationId, id, boot, claims } = job
      signal.throwIfAborted()
      const stopped = once(signal, 'abort')
      for (let other = making.get(key); other; other = making.get(key)) {
        await Promise.race([other.promise, stopped])
        signal.throwIfAborted()
      }
      making.set(key, Promise.withResolvers())
      keys.set(id, key)
      try {
        const before = await store.cached(organizationId, key)
        if (before === undefined) return
        if (!(await store.reuse(organizationId, id, { jobId: before, at: Date.now(), claim: { boot, claims } }))) return
      } catch (thrown) {
        this.end(id)
        throw thrown
      }
      this.end(id)
      await stopped
      signal.throwIfAborted()
    },

    /** Its result is there, or there will be none. */
    end(jobId: string): void {
      const key = keys.get(jobId)
      if (key === undefined) return
      keys.delete(jobId)
      making.get(key)?.resolve()
      making.delete(key)
    },
  }
}
