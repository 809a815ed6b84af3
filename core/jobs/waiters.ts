import type { Log } from '../log.ts'
import type { JobRecord, RowKey, Store } from '../store/store.ts'

/** Waits for the end of jobs in this process. */
export function openWaiters({ store, log }: { store: Pick<Store['jobs'], 'find'>; log: Log }) {
  const waiting = new Map<string, Set<(job?: JobRecord) => void>>()
  /** The organizations of the jobs that are waited for. */
  const organizations = new Map<string, string>()

  return {
    /**
     * Resolves with the job when its end is announced, or with undefined when the signal aborts or `releaseAll` is
     * called. `poll` looks at jobs whose organization is given.
     */
    wait(id: string, signal: AbortSignal, organizationId?: string): Promise<JobRecord | undefined> {
      if (signal.aborted) return Promise.resolve(undefined)
      return new Promise(resolve => {
        const waiters = waiting.get(id) ?? new Set()
        waiting.set(id, waiters)
        if (organizationId !== undefined) organizations.set(id, organizationId)
        const settle = (job?: JobRecord) => {
          waiters.delete(settle)
          if (waiters.size === 0) {
            waiting.delete(id)
            organizations.delete(id)
          }
          signal.removeEventListener('abort', giveUp)
          resolve(job)
        }
        const giveUp = () => settle()
        waiters.add(settle)
        signal.addEventListener('abort', giveUp)
      })
    },
    /** Announces that the job has ended. The job is read only if something waits for it. */
    announce({ id, organizationId }: RowKey): void {
      const waiters = waiting.get(id)
      if (!waiters) return
      const settleAll = (job?: JobRecord) => {
        for (const settle of waiters) settle(job)
      }
      store.find(organizationId, id).then(settleAll, (thrown: unknown) => {
        log.warn('A job that has ended could not be read', { job: id }, thrown)
        settleAll()
      })
    },
    /** Looks every `everyMs` whether the jobs have ended elsewhere, until the process ends. */
    poll(everyMs: number): void {
      let looking = false
      const look = async () => {
        if (looking) return
        looking = true
        for (const [id, organizationId] of organizations) {
          // One that could not be read is looked at again.
          const found = await store.find(organizationId, id).then(
            job => ({ job }),
            () => undefined,
          )
          if (!found || found.job?.finishedAt === null) continue
          for (const settle of waiting.get(id) ?? []) settle(found.job)
        }
        looking = false
      }
      setInterval(() => void look(), everyMs).unref()
    },
    releaseAll(): void {
      for (const waiters of waiting.values()) for (const settle of waiters) settle()
    },
  }
}
