import { Failure, type FailureCode } from '../../failure.ts'
import type { Task } from '../../tasks/tasks.ts'
import type { JobError, JobStatus, Usage } from '../store.ts'
import type { Connection } from './database.ts'
import type { Events } from './events.ts'
import type { ExecutionCounts } from './execution-counts.ts'
import type { Flow } from './flow.ts'
import type { Ledger } from './ledger.ts'
import type { MovesOfGroup } from './moves.ts'
import type { Tally } from './tally.ts'

/** What has to be known of a job to end it. */
export interface EndingRow {
  number: number
  organization_id: string
  id: string
  token_id: string
  task: Task
  model_id: string
  engine_id: string | null
  status: JobStatus
  attempt: number
  retention_ms: number | null
  created_at: number
  started_at: number | null
  execution: number | null
  node: number | null
}
export const endingColumns =
  'number, organization_id, id, token_id, task, model_id, engine_id, status, attempt, retention_ms, created_at, started_at, execution, node'

export interface End {
  status: 'completed' | 'failed' | 'cancelled'
  at: number
  error?: JobError
  engineId?: string | null
  usage?: Usage
  cost?: number
}

export const nothing: Usage = { inputTokens: 0, outputTokens: 0 }

/** What the writer's commands share. */
export interface Writing {
  boot: string
  ledger: Ledger
  tally: Tally
  counts: ExecutionCounts
  events: Events
  moves: MovesOfGroup
  flow: Flow
}

/**
 * The one way in which a job ends, whoever ends it: its row, its bill, its event and how long its files are kept, in
 * the caller's transaction.
 */
export function openEnd(connection: Connection, { ledger, tally, events, flow }: Omit<Writing, 'boot'>) {
  const finish = connection.prepare(
    `UPDATE jobs SET status = ?, boot = NULL, error = ?, engine_id = ?, input_tokens = ?, output_tokens = ?, cost = ?,
       updated_at = ?, finished_at = ?, expires_at = ? WHERE number = ?`,
  )
  const keepFiles = connection.prepare('UPDATE files SET expires_at = ? WHERE job_id = ? AND removed_at IS NULL')

  return (row: EndingRow, { status, at, error, engineId, usage = nothing, cost = 0 }: End): void => {
    const engine = engineId ?? row.engine_id
    const expiresAt = row.retention_ms === null ? null : at + row.retention_ms
    finish.run(
      status,
      error ? JSON.stringify(error) : null,
      engine,
      usage.inputTokens,
      usage.outputTokens,
      cost,
      at,
      at,
      expiresAt,
      row.number,
    )
    keepFiles.run(expiresAt, row.id)
    tally.move(row.status, status)
    ledger.append([
      {
        id: row.id,
        organizationId: row.organization_id,
        tokenId: row.token_id,
        task: row.task,
        modelId: row.model_id,
        engineId: engine,
        status,
        error: error ?? null,
        usage,
        cost,
        createdAt: row.created_at,
        startedAt: row.started_at,
        finishedAt: at,
      },
    ])
    events.add(row.number, row.organization_id, `job.${status}`, row.attempt, at, row.execution, row.node)
    if (row.execution !== null && row.node !== null)
      flow.jobEnded(row.execution, row.node, { status, ran: row.status === 'processing', usage, cost }, at)
  }
}

/** The error of a job that the store itself ends. */
export function errorOf(code: FailureCode, attempt: number, sentence: string): JobError {
  const { message, type, retryable } = new Failure(code, sentence)
  return { code, message, type, retryable, attempt }
}

/** What a node has failed of whose job somebody cancelled. */
export const cancelledError = errorOf('cancelled', 0, 'The job of the node was cancelled.')
