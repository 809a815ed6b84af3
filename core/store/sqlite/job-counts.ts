import { type JobStatus, jobStatuses } from '../store.ts'
import type { Connection } from './database.ts'

const isOpen = (status: JobStatus | undefined): boolean => status === 'pending' || status === 'processing'

/** The jobs that wait or run, each condition with an index of its own. */
const openJobs = [
  "status = 'pending' AND not_before = 0",
  "status = 'pending' AND not_before > 0",
  "status = 'processing'",
]

/**
 * Counts jobs by status (`job_counts`), exact for each transaction. The changes of a transaction are added up here and
 * written once before its commit; a trigger did it for every job and took a third of a submission. Code that changes a
 * job's status must call `move`; `infer db check` compares the counts.
 *
 * The jobs of each organization that wait or run are counted in memory only, from the first time that somebody needs the
 * number: each of its three index ranges is read once (15 ms for 70,000 jobs), and no commit writes it.
 */
export function openJobCounts(connection: Connection) {
  const add = connection.statement`UPDATE job_counts SET jobs = jobs + ? WHERE status = ?`
  const none = (): Record<JobStatus, number> => ({ pending: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 })
  let moved = none()
  /** By organization; undefined until it is needed, and when it may be wrong. */
  let open: Map<string, number> | undefined
  /** What this transaction has added to `open`, for rollbacks. */
  let changes: [organizationId: string, by: number][] = []
  /** Whether `open` was read in this transaction: a rollback then makes it wrong. */
  let isNew = false
  /** Whether changes of this transaction are written: they are no longer in `changes`. */
  let isWritten = false

  function addOpen(organizationId: string, by: number): void {
    if (!open) return
    const jobs = (open.get(organizationId) ?? 0) + by
    if (jobs === 0) open.delete(organizationId)
    else open.set(organizationId, jobs)
  }

  function revertTo(length: number): void {
    if (isNew) {
      open = undefined
      isNew = false
    }
    for (const [organizationId, by] of changes.splice(length).toReversed()) addOpen(organizationId, -by)
  }

  return {
    begin(): void {
      isWritten = false
    },
    /** Moves jobs of an organization from one status to another; `undefined` for new jobs (`from`) and removed ones (`to`). */
    move(organizationId: string, from: JobStatus | undefined, to: JobStatus | undefined, jobs = 1): void {
      if (from) moved[from] -= jobs
      if (to) moved[to] += jobs
      const by = (Number(isOpen(to)) - Number(isOpen(from))) * jobs
      if (by === 0 || !open) return
      changes.push([organizationId, by])
      addOpen(organizationId, by)
    },
    /** Moves jobs of several organizations that wait or run, and still do so afterwards. */
    moveOpen(from: 'pending' | 'processing', to: 'pending' | 'processing', jobs: number): void {
      moved[from] -= jobs
      moved[to] += jobs
    },
    /** How many jobs of the organization wait or run, with those of the current transaction. */
    openOf(organizationId: string): number {
      if (!open) {
        open = new Map()
        isNew = true
        for (const which of openJobs) {
          const counted = connection.query<{ id: string; jobs: number }>`SELECT organization_id AS id, count(*) AS jobs
            FROM jobs WHERE ${which} GROUP BY organization_id`
          for (const { id, jobs } of counted.all()) addOpen(id, jobs)
        }
      }
      return open.get(organizationId) ?? 0
    },
    mark(): () => void {
      const snapshot = { ...moved }
      const { length } = changes
      return () => {
        moved = snapshot
        if (isWritten) open = undefined
        revertTo(length)
      }
    },
    write(): void {
      for (const status of jobStatuses) if (moved[status] !== 0) add.run(moved[status], status)
      moved = none()
      changes = []
      isNew = false
      isWritten = true
    },
    forget(): void {
      moved = none()
      // The commit itself failed: what it would have changed is no longer known.
      if (isWritten) open = undefined
      revertTo(0)
    },
  }
}
export type JobCounts = ReturnType<typeof openJobCounts>
