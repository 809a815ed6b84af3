import type { JobRecord } from '../store.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './job-end.ts'
import { type JobRow, jobColumns, jobOf, openBatchesOf } from './job-reads.ts'

/**
 * The only way to start a job, in the caller's transaction. Returns the job after the change: it is read here, where
 * its pages were just written, because every commit empties the page cache of the reading connection. Undefined: the
 * job is no longer pending, or may no longer start.
 */
export function openClaim(connection: Connection, { boot, jobCounts, events, flow }: WriteContext) {
  const claim = connection.prepare<[string, number, number, string, string, number, number], JobRow>(
    `UPDATE jobs SET status = 'processing', attempt = attempt + 1, claims = claims + 1, boot = ?, started_at = ?,
       updated_at = ?
     WHERE organization_id = ? AND id = ? AND status = 'pending' AND not_before <= ?
       AND (attempt > 0 OR start_by IS NULL OR start_by > ?)
     RETURNING ${jobColumns}`,
  )
  const inputsOf = connection.prepare<[number], string>('SELECT inputs FROM job_inputs WHERE number = ?').pluck()

  const batchOf = openBatchesOf(connection)

  return (organizationId: string, id: string, now: number): JobRecord | undefined => {
    const claimed = claim.get(boot, now, now, organizationId, id, now, now)
    if (!claimed) return undefined
    jobCounts.move(organizationId, 'pending', 'processing')
    const { number, attempt, execution, node } = claimed
    events.add(number, organizationId, 'job.started', attempt, now, execution, node)
    if (execution === null || node === null) return jobOf(claimed, inputsOf.get(number), null, null, batchOf(claimed))
    flow.advance(execution, { type: 'job_started', node, at: now })
    return jobOf(claimed, undefined, null, flow.parentOf(execution, node))
  }
}
