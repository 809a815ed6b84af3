import type { JobRecord } from '../store.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './job-end.ts'
import { type JobRow, jobColumns, jobOf } from './job-reads.ts'

/**
 * The one way in which a job begins to run, in the caller's transaction. The answer is the job as it is now: it is read
 * here, where its pages were just written, and not by the caller, for whom every commit empties the cache. Undefined:
 * it does not wait any more, or may not start any more.
 */
export function openClaim(connection: Connection, { boot, jobCounts, events, flow }: WriteContext) {
  const take = connection.prepare<[string, number, number, string, string, number, number], JobRow>(
    `UPDATE jobs SET status = 'processing', attempt = attempt + 1, claims = claims + 1, boot = ?, started_at = ?,
       updated_at = ?
     WHERE organization_id = ? AND id = ? AND status = 'pending' AND not_before <= ?
       AND (attempt > 0 OR start_by IS NULL OR start_by > ?)
     RETURNING ${jobColumns}`,
  )
  const inputsOf = connection.prepare<[number], string>('SELECT inputs FROM job_inputs WHERE number = ?').pluck()

  return (organizationId: string, id: string, now: number): JobRecord | undefined => {
    const taken = take.get(boot, now, now, organizationId, id, now, now)
    if (!taken) return undefined
    jobCounts.move('pending', 'processing')
    const { number, attempt, execution, node } = taken
    events.add(number, organizationId, 'job.started', attempt, now, execution, node)
    if (execution === null || node === null) return jobOf(taken, inputsOf.get(number))
    flow.advance(execution, { type: 'job_started', node, at: now })
    return jobOf(taken, undefined, null, flow.parentOf(execution, node))
  }
}
