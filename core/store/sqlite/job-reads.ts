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
import { fromJson, type RowOf, selected } from './columns.ts'
import type { Connection } from './database.ts'
import { keptWork, openKeyHolders } from './idempotency-keys.ts'
import { openCallRows } from './ledger.ts'
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
export function openParents(connection: Connection) {
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
