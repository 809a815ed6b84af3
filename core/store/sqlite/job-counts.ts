import { type JobStatus, jobStatuses } from '../store.ts'
import type { Connection } from './database.ts'

/**
 * Counts jobs by status (`job_counts`), exact for each transaction. The changes of a transaction are added up here and
 * written once before its commit; a trigger did it for every job and took a third of a submission. Code that changes a
 * job's status must call `move`; `infer db check` compares the counts.
 */
export function openJobCounts(connection: Connection) {
  const add = connection.prepare('UPDATE job_counts SET jobs = jobs + ? WHERE status = ?')
  const none = (): Record<JobStatus, number> => ({ pending: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 })
  let moved = none()

  return {
    /** Moves jobs from one status to another; `undefined` for new jobs (`from`) and removed jobs (`to`). */
    move(from: JobStatus | undefined, to: JobStatus | undefined, jobs = 1): void {
      if (from) moved[from] -= jobs
      if (to) moved[to] += jobs
    },
    /** Returns a function that reverts to this point when later commands are rolled back. */
    mark(): () => void {
      const snapshot = { ...moved }
      return () => {
        moved = snapshot
      }
    },
    /** Call it last in a transaction. */
    write(): void {
      for (const status of jobStatuses) if (moved[status] !== 0) add.run(moved[status], status)
      moved = none()
    },
    /** Call it when the transaction was rolled back. */
    forget(): void {
      moved = none()
    },
  }
}
export type JobCounts = ReturnType<typeof openJobCounts>
