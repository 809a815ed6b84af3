import { Failure } from '../../failure.ts'
import type { Statements } from '../method-table.ts'
import type { JobStatus } from '../store.ts'
import { type Connection, scalar } from './database.ts'
import { eventLifetimeMs, forgetEvents } from './events.ts'
import { openFileRows } from './files.ts'
import { forgetKeys, keyLifetimeMs } from './idempotency-keys.ts'
import { ledgerReads } from './ledger.ts'
import { forgetResponses } from './responses.ts'
import type { WriteContext } from './write-context.ts'

interface EndedRow {
  number: number
  organization_id: string
  id: string
  status: JobStatus
  execution: number | null
  batch: number | null
}

/** Deletes all rows of a job; the ledger is kept. */
export function openForget(connection: Connection, { jobCounts }: Pick<WriteContext, 'jobCounts'>) {
  // Rows that refer to the job are deleted before it.
  const drops = ['job_inputs', 'job_results', 'job_logs', 'events', 'jobs'].map(table =>
    connection.prepare(`DELETE FROM ${table} WHERE number = ?`),
  )
  const uncache = connection.prepare('DELETE FROM cached_results WHERE job_id = ?')
  const files = openFileRows(connection)

  return ({ number, organization_id, id, status }: Omit<EndedRow, 'execution' | 'batch'>, at: number): void => {
    files.removeOfJob(organization_id, id, at)
    uncache.run(id)
    for (const drop of drops) drop.run(number)
    jobCounts.move(organization_id, status, undefined)
  }
}

/** The writer's commands that delete: jobs removed by callers, and whatever has expired. The ledger is kept. */
export function forgetCommands(connection: Connection, { jobCounts }: Pick<WriteContext, 'jobCounts'>) {
  const one = connection.prepare<[string, string], EndedRow>(
    'SELECT number, organization_id, id, status, execution, batch FROM jobs WHERE organization_id = ? AND id = ?',
  )
  const over = connection.prepare<[number, number], EndedRow>(
    `SELECT number, organization_id, id, status, execution, batch FROM jobs WHERE expires_at IS NOT NULL AND expires_at <= ?
       AND (batch IS NULL OR NOT EXISTS (SELECT 1 FROM batches WHERE number = jobs.batch AND finished_at IS NULL))
     ORDER BY expires_at LIMIT ?`,
  )
  const unfinishedBatch = scalar<[number], string>(
    connection,
    'SELECT id FROM batches WHERE number = ? AND finished_at IS NULL',
  )
  const forget = openForget(connection, { jobCounts })
  const calls = ledgerReads(connection)
  const events = forgetEvents(connection)
  const keys = forgetKeys(connection)
  const responses = forgetResponses(connection)

  return {
    'jobs.remove'(organizationId, id, at) {
      const row = one.get(organizationId, id)
      if (row?.status === 'pending' || row?.status === 'processing')
        throw new Failure('conflict', `The job ${id} is ${row.status}. Cancel it before you delete it.`)
      if (row && row.execution !== null)
        throw new Failure('conflict', `The job ${id} belongs to an execution of a workflow. Delete that instead.`)
      const batch = row && row.batch !== null ? unfinishedBatch.get(row.batch) : undefined
      if (batch !== undefined)
        throw new Failure('conflict', `The job ${id} is a line of the batch ${batch}, which has not ended.`)
      if (row) forget(row, at)
      else if (calls.findCall(organizationId, id))
        throw new Failure(
          'conflict',
          `The job ${id} was a synchronous call: only its ledger row is kept, which cannot be deleted.`,
        )
      return row && true
    },

    'jobs.sweep'(now, limit, keysNow = now) {
      const ended = over.all(now, limit)
      for (const row of ended) forget(row, now)
      const others = events(now - eventLifetimeMs, limit) + keys(keysNow - keyLifetimeMs, limit) + responses(now, limit)
      return ended.length + others
    },
  } satisfies Partial<Statements>
}
