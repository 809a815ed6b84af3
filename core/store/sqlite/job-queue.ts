import { Failure } from '../../failure.ts'
import type { Statements } from '../method-table.ts'
import {
  type Backlog,
  deferredUntil,
  type JobRecord,
  jobErrorOf,
  type Resumption,
  type RowKey,
  type WaitingJob,
} from '../store.ts'
import type { Connection } from './database.ts'
import type { RetriedJob } from './events.ts'
import { changeOf } from './execution-flow.ts'
import { type EndingRow, endingColumns } from './job-end.ts'
import { type JobRow, jobColumns, jobOf, openBatchesOf, waitingColumns } from './job-reads.ts'
import type { WriteContext } from './write-context.ts'

/**
 * The writer's commands for pending jobs: each is an index search, whatever the length of the queue. The caller, which
 * knows the engines and the fair order, decides which job is next.
 */
export function queueCommands(connection: Connection, context: WriteContext) {
  const { jobCounts, requeued, endJob: end, eachRow, giveUpJob } = context
  const backlog = connection.query<Backlog>`SELECT model_id AS modelId, class, organization_id AS organizationId,
    count(*) AS jobs FROM jobs WHERE status = 'pending' AND not_before = 0 GROUP BY model_id, class, organization_id`
  const due = connection.query<WaitingJob & { number: number }>`SELECT number, ${waitingColumns} FROM jobs
    WHERE status = 'pending' AND not_before > 0 AND not_before <= ? ORDER BY not_before LIMIT ?`
  const deferred = connection.query<RowKey>`SELECT organization_id AS organizationId, id FROM jobs
    WHERE status = 'pending' AND not_before > 0 AND not_before = ? AND awaits IS NULL ORDER BY number`
  const oneDeferred = connection.query<EndingRow>`SELECT ${endingColumns} FROM jobs WHERE organization_id = ? AND id = ?
    AND status = 'pending' AND not_before = ? AND awaits IS NULL`
  const unhold = connection.statement`UPDATE jobs SET not_before = ?, updated_at = ? WHERE number = ?`
  const replaceInputs = connection.statement`UPDATE job_inputs SET inputs = ? WHERE number = ?`
  const undelay = connection.statement`UPDATE jobs
    SET not_before = 0, updated_at = max(updated_at, not_before) WHERE number = ?`
  const giveBack = connection.query<RetriedJob>`UPDATE jobs
    SET status = 'pending', boot = NULL, attempt = attempt - 1, not_before = ?, started_at = NULL
    WHERE organization_id = ? AND id = ? AND status = 'processing' AND boot = ? AND claims = ?
    RETURNING number, organization_id AS organizationId, attempt, execution, node, item`
  const pastDeadline = connection.query<EndingRow & { startBy: number }>`SELECT ${endingColumns}, start_by AS startBy
    FROM jobs WHERE status = 'pending' AND attempt = 0 AND start_by IS NOT NULL AND start_by <= ? ORDER BY start_by
    LIMIT ?`
  const unfinished = connection.query<EndingRow>`SELECT ${endingColumns} FROM jobs WHERE organization_id = ? AND id = ?
    AND finished_at IS NULL`
  const claim = openClaim(connection, context)

  return {
    /** Ends a deferral. False: the job is not deferred any more. */
    resumeJob(organizationId: string, id: string, how: Resumption, at: number): boolean {
      const row = oneDeferred.get(organizationId, id, deferredUntil)
      if (!row) return false
      if ('error' in how) end(row, { status: 'failed', at, error: how.error })
      else {
        unhold.run(how.notBefore <= at ? 0 : how.notBefore, at, row.number)
        replaceInputs.run(how.inputs, row.number)
      }
      return true
    },

    /** Returns the jobs that have failed now. */
    expireJobs(now: number, limit: number): RowKey[] {
      const rows = pastDeadline.all(now, limit)
      eachRow(
        rows,
        row => {
          const sentence =
            `The job had not started by its start deadline, ${new Date(row.startBy).toISOString()}, and was not run. ` +
            'Submit it again, with a later deadline or when the server is less busy.'
          end(row, { status: 'failed', at: now, error: jobErrorOf(new Failure('timeout', sentence), row.attempt) })
        },
        row => giveUpJob(row, now),
      )
      return rows.map(({ organizationId, id }) => ({ organizationId, id }))
    },

    ...({
      'jobs.backlog': () => backlog.all(),

      'jobs.deferred': () => deferred.all(deferredUntil),

      'jobs.wake'(now, limit) {
        return due.all(now, limit).map(({ number, ...job }) => {
          undelay.run(number)
          return job
        })
      },

      'jobs.claim': claim,

      'jobs.giveUp'(organizationId, id, at) {
        const row = unfinished.get(organizationId, id)
        if (row) giveUpJob(row, at)
        return row !== undefined
      },

      /** The event is `job.retrying`: without one a reader of the events would consider the pending job running. */
      'jobs.release'(claim, notBefore) {
        const at = Date.now()
        const released = giveBack.get(notBefore, claim.organizationId, claim.id, claim.boot, claim.claims)
        if (!released) return false
        jobCounts.move(claim.organizationId, 'processing', 'pending')
        requeued(released, at, null)
        return true
      },
    } satisfies Statements),
  }
}

/**
 * The only way to start a job, in the caller's transaction. Returns the job after the change: it is read here, where
 * its pages were just written, because every commit empties the page cache of the reading connection. Undefined: the
 * job is no longer pending, or may no longer start.
 */
function openClaim(connection: Connection, { boot, jobCounts, events, flow }: WriteContext) {
  const claim = connection.query<JobRow>`
    UPDATE jobs SET status = 'processing', attempt = attempt + 1, claims = claims + 1, boot = ?, started_at = ?,
    updated_at = ?, reference_queue_ms = max(0, ? - created_at - ?)
    WHERE organization_id = ? AND id = ? AND status = 'pending' AND not_before <= ?
    AND (attempt > 0 OR start_by IS NULL OR start_by > ?)
    RETURNING ${jobColumns}`
  const inputsOf = connection.scalar<string>`SELECT inputs FROM job_inputs WHERE number = ?`

  const batchOf = openBatchesOf(connection)

  return (organizationId: string, id: string, now: number, behindMs: number | null = null): JobRecord | undefined => {
    const claimed = claim.get(boot, now, now, now, behindMs, organizationId, id, now, now)
    if (!claimed) return undefined
    jobCounts.move(organizationId, 'pending', 'processing')
    const { number, attempt, execution, node, item } = claimed
    const ofNode = item === null ? ([execution, node] as const) : []
    events.add(number, organizationId, 'job.started', attempt, now, ...ofNode)
    if (execution === null || node === null) return jobOf(claimed, inputsOf.get(number), null, null, batchOf(claimed))
    flow.advance(execution, { ...changeOf(claimed, 'started'), at: now })
    return jobOf(claimed, undefined, null, flow.parentOf(execution, node, item))
  }
}
