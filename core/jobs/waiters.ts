import type { Log } from '../log.ts'
import type { JobRecord, Store } from '../store/store.ts'
import type { JobKey } from './live-runs.ts'

/** Those who wait for the end of a job in this process. */
export function openWaiters({ store, log }: { store: Pick<Store['jobs'], 'find'>; log: Log }) {
  const waiting = new Map<string, Set<(job?: JobRecord) => void>>()

  return {
    /** Resolves with the job when its end is told, with undefined when the signal aborts or everyone is let go. */
    wait(id: string, signal: AbortSignal): Promise<JobRecord | undefined> {
      if (signal.aborted) return Promise.resolve(undefined)
      return new Promise(resolve => {
        const those = waiting.get(id) ?? new Set()
        waiting.set(id, those)
        const settle = (job?: JobRecord) => {
          those.delete(settle)
          if (those.size === 0) waiting.delete(id)
          signal.removeEventListener('abort', giveUp)
          resolve(job)
        }
        const giveUp = () => settle()
        those.add(settle)
        signal.addEventListener('abort', giveUp)
      })
    },
    /** The job has ended. It is read only where somebody waits for it. */
    tell({ id, organizationId }: JobKey): void {
      const those = waiting.get(id)
      if (!those) return
      const all = (job?: JobRecord) => {
        for (const settle of those) settle(job)
      }
      store.find(organizationId, id).then(all, (thrown: unknown) => {
        log.warn('A job that has ended could not be read', { job: id }, thrown)
        all()
      })
    },
    releaseAll(): void {
      for (const those of waiting.values()) for (const settle of those) settle()
    },
  }
}
