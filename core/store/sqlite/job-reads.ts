import type { RegionLabel } from '../../schemas/region.ts'
import { callRecord } from '../calls.ts'
import type { Statements } from '../method-table.ts'
import type {
  JobError,
  JobRecord,
  JobStatus,
  LargeResult,
  RequestWebhook,
  StoredJobClass,
  WaitingJob,
} from '../store.ts'
import type { Connection } from './database.ts'
import { keptWork, openKeyHolders } from './keys.ts'
import { ledgerReads } from './ledger.ts'
import { openResultOf, type ResultRow } from './result-rows.ts'
import { type UsageRow, usageColumns, usageOfRow } from './usage-columns.ts'

export interface JobRow extends UsageRow {
  number: number
  organization_id: string
  id: string
  token_id: string
  task: JobRecord['task']
  model_id: string
  slug: string | null
  class: StoredJobClass
  priority: number
  rank: number
  status: JobStatus
  attempt: number
  max_attempts: number
  claims: number
  not_before: number
  start_by: number | null
  timeout_ms: number | null
  retention_ms: number | null
  boot: string | null
  engine_id: string | null
  metadata: string | null
  region: RegionLabel | null
  webhook: string | null
  error: string | null
  cost: number | null
  created_at: number
  updated_at: number
  started_at: number | null
  finished_at: number | null
  expires_at: number | null
  execution: number | null
  node: number | null
  batch: number | null
  batch_line: number | null
}
export const jobColumns = `number, organization_id, id, token_id, task, model_id, slug, class, priority, rank, status, attempt,
  max_attempts, claims, not_before, start_by, timeout_ms, retention_ms, boot, engine_id, metadata, region, webhook, error,
  ${usageColumns}, cost, created_at, updated_at, started_at, finished_at, expires_at,
  execution, node, batch, batch_line`

/** The record of a job, with its inputs and its result if they were read. */
export const jobOf = (
  row: JobRow,
  inputs = 'null',
  result: string | LargeResult | null = null,
  parent: JobRecord['parent'] = null,
  batch: JobRecord['batch'] = null,
): JobRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  tokenId: row.token_id,
  kind: 'async',
  task: row.task,
  modelId: row.model_id,
  slug: row.slug,
  inputs,
  class: row.class,
  priority: row.priority,
  rank: row.rank,
  status: row.status,
  attempt: row.attempt,
  maxAttempts: row.max_attempts,
  claims: row.claims,
  notBefore: row.not_before || row.created_at,
  startBy: row.start_by,
  timeoutMs: row.timeout_ms,
  retentionMs: row.retention_ms,
  boot: row.boot,
  engineId: row.engine_id,
  metadata: row.metadata,
  region: row.region,
  webhook: row.webhook === null ? null : (JSON.parse(row.webhook) as RequestWebhook),
  result,
  error: row.error === null ? null : (JSON.parse(row.error) as JobError),
  usage: row.input_tokens === null ? null : usageOfRow(row),
  cost: row.cost,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  startedAt: row.started_at,
  finishedAt: row.finished_at,
  expiresAt: row.expires_at,
  parent,
  batch,
})

/** The execution and node of a job. Most jobs have none, and cost no query. */
export function openParents(connection: Connection) {
  const parent = connection.prepare<[number, number], NonNullable<JobRecord['parent']>>(
    `SELECT e.id AS executionId, n.node_id AS nodeId FROM execution_nodes AS n JOIN executions AS e
       ON e.number = n.execution WHERE n.execution = ? AND n.node = ?`,
  )
  return ({ execution, node }: Pick<JobRow, 'execution' | 'node'>): JobRecord['parent'] =>
    execution === null || node === null ? null : (parent.get(execution, node) ?? null)
}

/** The batch and line of a job. Most jobs have none, and cost no query. */
export function openBatchesOf(connection: Connection) {
  const id = connection.prepare<[number], string>('SELECT id FROM batches WHERE number = ?').pluck()
  return ({ batch, batch_line: line }: Pick<JobRow, 'batch' | 'batch_line'>): JobRecord['batch'] => {
    const found = batch === null || line === null ? undefined : id.get(batch)
    return found === undefined ? null : { id: found, line: line! }
  }
}

/** Reads of jobs; short statements on a read-only connection. */
export function jobReads(connection: Connection) {
  const one = connection.prepare<[string, string], JobRow>(
    `SELECT ${jobColumns} FROM jobs WHERE organization_id = ? AND id = ?`,
  )
  const inputs = connection.prepare<[number], string>('SELECT inputs FROM job_inputs WHERE number = ?').pluck()
  const result = connection.prepare<[number], ResultRow>('SELECT result, file, bytes FROM job_results WHERE number = ?')
  const resultOf = openResultOf(connection)
  const logs = connection
    .prepare<[string, string], string>(
      'SELECT lines FROM job_logs WHERE number = (SELECT number FROM jobs WHERE organization_id = ? AND id = ?)',
    )
    .pluck()
  const removed = connection
    .prepare<[string, string], number>(
      `SELECT 1 FROM ledger WHERE organization_id = ? AND kind = 'async' AND job_id = ? AND NOT EXISTS (
         SELECT 1 FROM jobs WHERE jobs.organization_id = ledger.organization_id AND jobs.id = ledger.job_id)`,
    )
    .pluck()
  const waiting = connection.prepare<[string, string, string, number, number], WaitingJob>(
    `SELECT id, organization_id AS organizationId, model_id AS modelId, class, rank FROM jobs
     WHERE status = 'pending' AND not_before = 0 AND model_id = ? AND class = ? AND organization_id = ? AND rank >= ?
     ORDER BY rank, number LIMIT ?`,
  )
  const nextDue = connection
    .prepare<[], number | null>(
      `SELECT min(due) FROM (
         SELECT min(not_before) AS due FROM jobs WHERE status = 'pending' AND not_before > 0
         UNION ALL
         SELECT min(start_by) FROM jobs WHERE status = 'pending' AND attempt = 0 AND start_by IS NOT NULL)`,
    )
    .pluck()
  const counts = connection.prepare<[], { status: JobStatus; jobs: number }>('SELECT status, jobs FROM job_counts')
  const { findCall } = ledgerReads(connection)
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
    'jobs.nextDue': () => nextDue.get() ?? null,
    'jobs.counts': () =>
      Object.fromEntries(counts.all().map(row => [row.status, row.jobs])) as Record<JobStatus, number>,
  } satisfies Partial<Statements>
}
