import { ulid } from '../../ids.ts'
import type { Statements } from '../method-table.ts'
import {
  callRecord,
  type JobError,
  type JobRecord,
  type JobStatus,
  type LargeResult,
  type RequestWebhook,
  type Usage,
  type WaitingJob,
  type WaitingJobDetails,
} from '../store.ts'
import { fromJson, pageOf, type RowOf, selected } from './columns.ts'
import type { Connection } from './database.ts'
import { keptWork, openKeyHolders } from './idempotency-keys.ts'
import { type CallRow, callColumns, callOf, openCallRows } from './ledger.ts'
import { openResultOf, type ResultRow } from './results.ts'
import { usageJson } from './usage-columns.ts'

/** A job as its row has it: JSON as text, and the numbers of rows that it refers to. */
export interface JobRow
  extends RowOf<
    Omit<JobRecord, 'kind' | 'inputs' | 'result' | 'parent' | 'batch' | 'relayed'>,
    'webhook' | 'error' | 'usage'
  > {
  number: number
  relayed: number
  execution: number | null
  node: number | null
  /** The position of the item for which it runs; null for the job of a node, and outside of executions. */
  item: number | null
  batch: number | null
  batchLine: number | null
}
export const jobColumns = `${selected(
  `number, organizationId, id, tokenId, task, modelId, slug, class, priority, rank, status, attempt, maxAttempts,
  claims, notBefore, startBy, timeoutMs, retentionMs, boot, engineId, metadata, region, webhook, error, cost,
  createdAt, updatedAt, startedAt, referenceQueueMs, requestedModel, fallbackReason, traceparent, relayed,
  finishedAt, expiresAt, awaits, execution, node, item, batch, batchLine`,
)}, iif(input_tokens IS NULL, NULL, ${usageJson}) AS usage`

/** The columns of a job that waits. */
export const waitingColumns = selected('id, organizationId, modelId, class, rank')

/** The record of a job, with its inputs and its result if they were read. */
export const jobOf = (
  row: JobRow,
  inputs = 'null',
  result: string | LargeResult | null = null,
  parent: JobRecord['parent'] = null,
  batch: JobRecord['batch'] = null,
): JobRecord => {
  const {
    number: _number,
    execution: _execution,
    node: _node,
    item: _item,
    batchLine: _line,
    relayed,
    webhook,
    error,
    usage,
    ...record
  } = row
  const json = {
    relayed: relayed === 1,
    webhook: fromJson<RequestWebhook>(webhook),
    error: fromJson<JobError>(error),
    usage: fromJson<Usage>(usage),
  }
  const notBefore = record.notBefore || record.createdAt
  return { ...record, kind: 'async', notBefore, ...json, inputs, result, parent, batch }
}

/** The execution and node of a job, and its item. Most jobs have none, and cost no query. */
function openParents(connection: Connection) {
  const parent = connection.query<NonNullable<JobRecord['parent']>>`SELECT e.id AS executionId, n.node_id AS nodeId
    FROM execution_nodes AS n JOIN executions AS e ON e.number = n.execution WHERE n.execution = ? AND n.node = ?`
  return ({ execution, node, item }: Pick<JobRow, 'execution' | 'node' | 'item'>): JobRecord['parent'] => {
    const found = execution === null || node === null ? undefined : parent.get(execution, node)
    return found === undefined ? null : item === null ? found : { ...found, item }
  }
}

/** The batch and line of a job. Most jobs have none, and cost no query. */
export function openBatchesOf(connection: Connection) {
  const id = connection.scalar<string>`SELECT id FROM batches WHERE number = ?`
  return ({ batch, batchLine: line }: Pick<JobRow, 'batch' | 'batchLine'>): JobRecord['batch'] => {
    const found = batch === null || line === null ? undefined : id.get(batch)
    return found === undefined ? null : { id: found, line: line! }
  }
}

/** Reads of jobs; short statements on a read-only connection. */
export function jobReads(connection: Connection) {
  const one = connection.query<JobRow>`SELECT ${jobColumns} FROM jobs WHERE organization_id = ? AND id = ?`
  const inputs = connection.scalar<string>`SELECT inputs FROM job_inputs WHERE number = ?`
  const result = connection.query<ResultRow>`SELECT result, file, bytes FROM job_results WHERE number = ?`
  const resultOf = openResultOf(connection)
  const logs = connection.scalar<string>`SELECT lines FROM job_logs WHERE number =
    (SELECT number FROM jobs WHERE organization_id = ? AND id = ?)`
  const removed = connection.scalar<number>`SELECT 1 FROM ledger WHERE organization_id = ? AND kind = 'async'
    AND job_id = ? AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.organization_id = ledger.organization_id
    AND jobs.id = ledger.job_id)`
  const due = `FROM jobs WHERE status = 'pending' AND not_before = 0 AND model_id = ? AND class = ?
    AND organization_id = ? AND rank >= ? ORDER BY rank, number LIMIT ?`
  const waiting = connection.query<WaitingJob>`SELECT ${waitingColumns} ${due}`
  const details = connection.query<WaitingJobDetails>`SELECT ${waitingColumns},
    ${selected('maxAttempts, fallbackReason')}, updated_at AS since ${due}`
  const nextDue = connection.scalar<number | null>`SELECT min(due) FROM (
      SELECT min(not_before) AS due FROM jobs WHERE status = 'pending' AND not_before > 0
      UNION ALL
      SELECT min(start_by) FROM jobs WHERE status = 'pending' AND attempt = 0 AND start_by IS NOT NULL)`
  const counts = connection.query<{ status: JobStatus; jobs: number }>`SELECT status, jobs FROM job_counts`
  const findCall = openCallRows(connection)
  const keyHolder = openKeyHolders(connection)
  const parentOf = openParents(connection)
  const batchOf = openBatchesOf(connection)

  function find(organizationId: string, id: string): JobRecord | undefined {
    const row = one.get(organizationId, id)
    if (row) {
      const made = row.status === 'completed' ? result.get(row.number) : undefined
      return jobOf(row, inputs.get(row.number), made && resultOf(made), parentOf(row), batchOf(row))
    }
    const call = findCall(organizationId, id)
    return call && callRecord(call)
  }

  return {
    'jobs.find': find,
    'jobs.findByKey'(organizationId, key, now) {
      const holder = keyHolder(organizationId, key, now)
      return holder === undefined ? undefined : keptWork('job', holder, find(organizationId, holder))
    },
    'jobs.wasRemoved': (organizationId, id) => removed.get(organizationId, id) !== undefined,
    'jobs.logs': (organizationId, id) => logs.get(organizationId, id) ?? '[]',
    'jobs.waiting': query => waiting.all(query.modelId, query.class, query.organizationId, query.from, query.limit),
    'jobs.waitingDetails': query =>
      details.all(query.modelId, query.class, query.organizationId, query.from, query.limit),
    'jobs.nextDue': () => nextDue.get() ?? null,
    'jobs.counts': () =>
      Object.fromEntries(counts.all().map(row => [row.status, row.jobs])) as Record<JobStatus, number>,
  } satisfies Statements
}

/**
 * How many jobs and calls one page scans before it returns a cursor. Metadata is JSON text that must be parsed, so
 * fewer rows are scanned for it.
 */
const listScan = { rows: 1000, withMetadata: 500 }
/** How far the time in an id may differ from the job's own creation time, milliseconds. */
const driftMs = 3_600_000

/** The lowest id of a job created in this millisecond. */
const idAt = (at: number): string => `job_${ulid(Math.min(Math.max(0, at), 2 ** 48 - 1)).slice(0, 10)}`

/**
 * Lists jobs and synchronous calls together, newest first. Scans both by id, a bounded number of rows; the rows that
 * pass the filter are the page, and `next` is where the scan stopped.
 */
export function jobListReads(connection: Connection, scan = listScan) {
  const parentOf = openParents(connection)
  const batchOf = openBatchesOf(connection)
  const recordOf = (row: JobRow): JobRecord => jobOf(row, 'null', null, parentOf(row), batchOf(row))
  const bounds = (table: string, id: string, kind: string) =>
    connection.scalar<string>`SELECT ${id} FROM ${table} WHERE organization_id = :organizationId ${kind}
      AND ${id} < :before AND ${id} >= :to ORDER BY ${id} DESC LIMIT 1 OFFSET :skip`
  const matches = `(:status IS NULL OR status = :status) AND (:task IS NULL OR task = :task)
    AND (:modelId IS NULL OR model_id = :modelId) AND created_at > :createdAfter AND created_at < :createdBefore
    AND (:tokenId IS NULL OR token_id = :tokenId)
    AND (:userId IS NULL OR token_id IN (SELECT tokens.id FROM tokens WHERE user_id = :userId))`
  const jobFloor = bounds('jobs', 'id', '')
  const callFloor = bounds('ledger', 'job_id', `AND kind = 'sync'`)
  const jobs = connection.query<JobRow>`SELECT ${jobColumns} FROM jobs WHERE organization_id = :organizationId
    AND id < :before AND id >= :to AND ${matches} ORDER BY id DESC LIMIT :limit`
  const numbered = connection.query<JobRow>`SELECT ${jobColumns} FROM jobs WHERE number = ?`
  const described = connection.query<{ number: number; metadata: string }>`SELECT number, metadata FROM jobs
    WHERE organization_id = :organizationId AND id < :before AND id >= :to AND metadata IS NOT NULL AND ${matches}
    ORDER BY id DESC`
  const calls = connection.query<CallRow>`SELECT ${callColumns} FROM ledger WHERE organization_id = :organizationId
    AND kind = 'sync' AND job_id < :before AND job_id >= :to AND ${matches} ORDER BY job_id DESC LIMIT :limit`

  // Items have a list of their own: there may be thousands.
  const ofExecution = connection.query<JobRow>`SELECT ${jobColumns} FROM jobs WHERE node IS NOT NULL AND item IS NULL AND execution =
    (SELECT number FROM executions WHERE organization_id = :organizationId AND id = :executionId) AND id < :before
    AND ${matches} ORDER BY id DESC`

  function jobPage(query: object, metadata: [string, string][], limit: number): JobRecord[] {
    if (metadata.length === 0) return jobs.all({ ...query, limit }).map(recordOf)
    const found: number[] = []
    for (const row of described.iterate(query)) {
      if (hasMetadata(row.metadata, metadata)) found.push(row.number)
      if (found.length === limit) break
    }
    return found.flatMap(number => numbered.all(number).map(recordOf))
  }

  return {
    'jobs.list'(organizationId, filter) {
      const { limit, after = '~', kind, createdAfter = -1, createdBefore = Number.MAX_SAFE_INTEGER } = filter
      const { status = null, task = null, modelId = null, userId = null, tokenId = null } = filter
      const metadata = Object.entries(filter.metadata ?? {})
      const [withJobs, withCalls] = [kind !== 'sync', kind !== 'async' && metadata.length === 0]
      const maxId = filter.createdBefore === undefined ? '~' : idAt(createdBefore + driftMs)
      const before = after < maxId ? after : maxId
      const minId = filter.createdAfter === undefined ? '' : idAt(createdAfter - driftMs)

      const wanted = { createdAfter, createdBefore, status, task, modelId, userId, tokenId }
      if (filter.executionId !== undefined) {
        const { executionId } = filter
        const found: JobRow[] = []
        // At most as many as an execution has nodes, so none is left out as too far back.
        if (withJobs)
          for (const row of ofExecution.iterate({ organizationId, before, ...wanted, executionId })) {
            if (hasMetadata(row.metadata, metadata)) found.push(row)
            if (found.length > limit) break
          }
        const { page, next } = pageOf(found, limit)
        return { jobs: page.map(recordOf), next: next?.id ?? null }
      }

      const skip = (metadata.length > 0 ? scan.withMetadata : scan.rows) - 1
      const span = { organizationId, before, to: minId, skip }
      const floors = [withJobs && jobFloor.get(span), withCalls && callFloor.get(span)]
      const to = floors.reduce<string>((highest, floor) => (floor && floor > highest ? floor : highest), minId)

      const query = { organizationId, before, to, ...wanted }
      // One more than the limit shows whether there is a next page.
      const own = withJobs ? jobPage(query, metadata, limit + 1) : []
      // If the page of jobs is full, older calls do not matter.
      const from = own.length > limit ? own.at(-1)!.id : to
      const called = withCalls
        ? calls.all({ ...query, to: from, limit: limit + 1 }).map(row => callRecord(callOf(row)))
        : []
      const both = [...own, ...called].sort((a, b) => (a.id < b.id ? 1 : -1))
      const { page, next } = pageOf(both, limit)
      return { jobs: page, next: next?.id ?? (to > minId ? to : null) }
    },
  } satisfies Statements
}

/** Whether the JSON text of an object has these values. */
export function hasMetadata(text: string | null, query: [string, string][]): boolean {
  const metadata: Record<string, unknown> = fromJson(text) ?? {}
  return query.every(([name, value]) => Object.hasOwn(metadata, name) && metadata[name] === value)
}
