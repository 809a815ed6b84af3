import { callRecord } from '../calls.ts'
import type { JobError, JobRecord, JobStatus } from '../store.ts'
import type { Connection } from './database.ts'
import { ledgerReads } from './ledger.ts'

interface JobRow {
  number: number
  organization_id: string
  id: string
  queue_id: string
  token_id: string
  task: JobRecord['task']
  model_id: string
  priority: number
  status: JobStatus
  attempt: number
  max_attempts: number
  claims: number
  not_before: number
  boot: string | null
  engine_id: string | null
  metadata: string | null
  error: string | null
  input_tokens: number | null
  output_tokens: number | null
  cost: number | null
  created_at: number
  updated_at: number
  started_at: number | null
  finished_at: number | null
}

/** What is read of jobs; short statements on a read-only connection. */
export function jobReads(connection: Connection) {
  const columns = `number, organization_id, id, queue_id, token_id, task, model_id, priority, status, attempt,
    max_attempts, claims, not_before, boot, engine_id, metadata, error, input_tokens, output_tokens, cost, created_at,
    updated_at, started_at, finished_at`
  const one = connection.prepare<[string, string], JobRow>(
    `SELECT ${columns} FROM jobs WHERE organization_id = ? AND id = ?`,
  )
  const numbered = connection.prepare<[number], JobRow>(`SELECT ${columns} FROM jobs WHERE number = ?`)
  const inputs = connection.prepare<[number], string>('SELECT inputs FROM job_inputs WHERE number = ?').pluck()
  const result = connection.prepare<[number], string>('SELECT result FROM job_results WHERE number = ?').pluck()
  const counts = connection.prepare<[], { status: JobStatus; jobs: number }>('SELECT status, jobs FROM job_counts')

  const { findCall } = ledgerReads(connection)

  const record = (row: JobRow): JobRecord => ({
    id: row.id,
    queueId: row.queue_id,
    organizationId: row.organization_id,
    tokenId: row.token_id,
    kind: 'async',
    task: row.task,
    modelId: row.model_id,
    inputs: inputs.get(row.number) ?? 'null',
    priority: row.priority,
    status: row.status,
    attempt: row.attempt,
    maxAttempts: row.max_attempts,
    claims: row.claims,
    notBefore: row.not_before || row.created_at,
    boot: row.boot,
    engineId: row.engine_id,
    metadata: row.metadata,
    result: row.status === 'completed' ? (result.get(row.number) ?? null) : null,
    error: row.error === null ? null : (JSON.parse(row.error) as JobError),
    usage:
      row.input_tokens === null || row.output_tokens === null
        ? null
        : { inputTokens: row.input_tokens, outputTokens: row.output_tokens },
    cost: row.cost,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  })

  return {
    find(organizationId: string, id: string): JobRecord | undefined {
      const row = one.get(organizationId, id)
      if (row) return record(row)
      const call = findCall(organizationId, id)
      return call && callRecord(call)
    },
    /** By the number that the writer's `jobs.claim` answers with. */
    numbered(number: number): JobRecord | undefined {
      const row = numbered.get(number)
      return row && record(row)
    },
    counts: () => Object.fromEntries(counts.all().map(row => [row.status, row.jobs])) as Record<JobStatus, number>,
  }
}
