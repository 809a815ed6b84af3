import type { JobRecord } from '../store/store.ts'

/** Those who wait for the end of a job in this process. */
export function openWaiters() {
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
    tell(job: JobRecord): void {
      for (const settle of waiting.get(job.id) ?? []) settle(job)
    },
    letGo(): void {
      for (const those of waiting.values()) for (const settle of those) settle()
    },
  }
}
