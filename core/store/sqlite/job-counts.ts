import { type JobStatus, jobStatuses } from '../store.ts'
import type { Connection } from './database.ts'

/**
 * How many jobs are in each status (`job_counts`), exact to the transaction. What the commands of a transaction move is
 * added up here and written once before its commit; a trigger did it for every job and was a third of a submission.
 * Whoever changes a job's status says so here; `infer db check` counts them.
 */
export function openJobCounts(connection: Connection) {
  const add = connection.prepare('UPDATE job_counts SET jobs = jobs + ? WHERE status = ?')
  const none = (): Record<JobStatus, number> => ({ pending: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 })
  let moved = none()

  return {
    /** Jobs go from one status to another; `undefined` is where new ones come from and forgotten ones go. */
    move(from: JobStatus | undefined, to: JobStatus | undefined, jobs = 1): void {
      if (from) moved[from] -= jobs
      if (to) moved[to] += jobs
    },
    /** What was moved so far, to come back to when what follows is undone. */
    mark(): () => void {
      const then = { ...moved }
      return () => {
        moved = then
      }
    },
    /** The last statements of a transaction. */
    write(): void {
      for (const status of jobStatuses) if (moved[status] !== 0) add.run(moved[status], status)
      moved = none()
    },
    /** The transaction was undone. */
    forget(): void {
      moved = none()
    },
  }
}
export type JobCounts = ReturnType<typeof openJobCounts>
