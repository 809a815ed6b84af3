import { conflict } from '../../failure.ts'
import type { Statements } from '../method-table.ts'
import { selected } from './columns.ts'
import { forgetConversationLinks } from './conversation-links.ts'
import { forgetConversations } from './conversations.ts'
import type { Connection } from './database.ts'
import { eventLifetimeMs, forgetEvents } from './events.ts'
import { forgetKeys, keyLifetimeMs } from './idempotency-keys.ts'
import type { JobRow } from './job-reads.ts'
import { openCallRows } from './ledger.ts'
import { forgetResponses } from './responses.ts'
import type { SharedContext, WriteContext } from './write-context.ts'

const columns = selected('number, organizationId, id, status, execution, batch')
type EndedRow = Pick<JobRow, 'number' | 'organizationId' | 'id' | 'status' | 'execution' | 'batch'>

/** Deletes all rows of a job; the ledger is kept. */
export function openForget(
  connection: Connection,
  { jobCounts, files, events }: Pick<SharedContext, 'jobCounts' | 'files' | 'events'>,
) {
  // Rows that refer to the job are deleted before it.
  const drops = ['job_inputs', 'job_results', 'job_logs', 'events', 'jobs'].map(
    table => connection.statement`DELETE FROM ${table} WHERE number = ?`,
  )
  const uncache = connection.statement`DELETE FROM cached_results WHERE job_id = ?`

  return ({ number, organizationId, id, status }: Omit<EndedRow, 'execution' | 'batch'>, at: number): void => {
    files.removeOfJob(organizationId, id, at)
    uncache.run(id)
    events.insert()
    for (const drop of drops) drop.run(number)
    jobCounts.move(organizationId, status, undefined)
  }
}

/** The writer's commands that delete: jobs removed by callers, and whatever has expired. The ledger is kept. */
export function forgetCommands(connection: Connection, { forgetJob: forget, eachRow }: WriteContext) {
  const one = connection.query<EndedRow>`SELECT ${columns} FROM jobs WHERE organization_id = ? AND id = ?`
  const over = connection.query<EndedRow>`SELECT ${columns} FROM jobs WHERE expires_at IS NOT NULL AND expires_at <= ?
    AND (batch IS NULL OR NOT EXISTS (SELECT 1 FROM batches WHERE number = jobs.batch AND finished_at IS NULL))
    ORDER BY expires_at LIMIT ?`
  const neverExpires = connection.statement`UPDATE jobs SET expires_at = NULL WHERE number = ?`
  const unfinishedBatch = connection.scalar<string>`SELECT id FROM batches WHERE number = ? AND finished_at IS NULL`
  const findCall = openCallRows(connection)
  const events = forgetEvents(connection)
  const keys = forgetKeys(connection)
  const responses = forgetResponses(connection)
  const conversations = forgetConversations(connection)
  const links = forgetConversationLinks(connection)

  return {
    'jobs.remove'(organizationId, id, at) {
      const row = one.get(organizationId, id)
      if (row?.status === 'pending' || row?.status === 'processing')
        throw conflict(`The job ${id} is ${row.status}. Cancel it before you delete it.`)
      if (row && row.execution !== null)
        throw conflict(`The job ${id} belongs to an execution of a workflow. Delete that instead.`)
      const batch = row && row.batch !== null ? unfinishedBatch.get(row.batch) : undefined
      if (batch !== undefined) throw conflict(`The job ${id} is a line of the batch ${batch}, which has not ended.`)
      if (row) forget(row, at)
      else if (findCall(organizationId, id))
        throw conflict(`The job ${id} was a synchronous call: only its ledger row is kept, which cannot be deleted.`)
      return row && true
    },

    'jobs.sweep'(now, limit, keysNow = now) {
      const ended = over.all(now, limit)
      eachRow(
        ended,
        row => forget(row, now),
        ({ number }) => neverExpires.run(number),
      )
      const others =
        events(now - eventLifetimeMs, limit) +
        keys(keysNow - keyLifetimeMs, limit) +
        responses(now, limit) +
        conversations(limit) +
        links(now, limit)
      return ended.length + others
    },
  } satisfies Statements
}
