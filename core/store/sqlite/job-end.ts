import { Failure, type FailureCode } from '../../failure.ts'
import type { Task } from '../../schemas/task.ts'
import { noUsage } from '../../usage.ts'
import type { FinishedJob, JobClaim, JobError, JobStatus, Usage } from '../store.ts'
import type { Connection } from './database.ts'
import type { ExecutionFlow } from './execution-flow.ts'
import { addingUsageSets, usageSets, usageValues } from './usage-columns.ts'
import type { WriteContext } from './write-context.ts'

/** The columns needed to end a job. */
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
  batch: number | null
  batch_line: number | null
  /** Of its earlier attempts; null before the first. */
  gpu_ms: number | null
  energy_mj: number | null
}
export const endingColumns =
  'number, organization_id, id, token_id, task, model_id, engine_id, status, attempt, retention_ms, created_at, started_at, execution, node, batch, batch_line, gpu_ms, energy_mj'

export interface End {
  status: 'completed' | 'failed' | 'cancelled'
  at: number
  error?: JobError
  engineId?: string | null
  usage?: Usage
  cost?: number
}

/** The row of a job after its end. */
type EndedRow = EndingRow & { expires_at: number | null }

/** The part of the shared state that ending a job needs. */
type EndWriting = Pick<WriteContext, 'ledger' | 'jobCounts' | 'events' | 'batches'> & {
  flow: Pick<ExecutionFlow, 'advance'>
}

/** The effects of a job's end besides its row: expiry of its files, its ledger row, its event, its execution. */
function openEndEffects(connection: Connection, { ledger, jobCounts, events, flow, batches }: EndWriting) {
  const keepFiles = connection.prepare('UPDATE files SET expires_at = ? WHERE job_id = ? AND removed_at IS NULL')

  return (row: EndedRow, before: JobStatus, end: End, slotOf?: string): void => {
    const { status, at, error, usage = noUsage, cost = 0 } = end
    keepFiles.run(row.expires_at, row.id)
    jobCounts.move(row.organization_id, before, status)
    const ended: FinishedJob = {
      id: row.id,
      organizationId: row.organization_id,
      tokenId: row.token_id,
      task: row.task,
      modelId: row.model_id,
      engineId: row.engine_id,
      status,
      error: error ?? null,
      usage,
      cost,
      createdAt: row.created_at,
      startedAt: row.started_at,
      finishedAt: at,
    }
    ledger.append([ended], row.execution)
    events.add(row.number, row.organization_id, `job.${status}`, row.attempt, at, row.execution, row.node)
    if (row.batch !== null && row.batch_line !== null) batches.lineEnded(row.batch, row.batch_line, status, usage, at)
    if (row.execution === null || row.node === null) return
    const ran = before === 'processing'
    flow.advance(row.execution, {
      type: 'job_ended',
      node: row.node,
      status,
      ran,
      spent: { ...usage, cost },
      slotOf,
      at,
    })
  }
}

/** Adds the GPU time and the energy of earlier attempts, which have failed or were interrupted. */
function withEarlierAttempts(usage: Usage, { gpu_ms, energy_mj }: EndingRow): Usage {
  if (gpu_ms === null) return usage
  if (usage.gpuMs === undefined) return { ...usage, gpuMs: gpu_ms, energyMj: energy_mj }
  const { energyMj = null } = usage
  return {
    ...usage,
    gpuMs: usage.gpuMs + gpu_ms,
    energyMj: energyMj === null || energy_mj === null ? null : energyMj + energy_mj,
  }
}

/** Ends a job that was looked up before, in the caller's transaction. */
export function openEnd(connection: Connection, context: EndWriting) {
  const finish = connection.prepare(
    `UPDATE jobs SET status = ?, boot = NULL, error = ?, engine_id = ?, ${usageSets}, cost = ?, held = 0,
       updated_at = ?, finished_at = ?, expires_at = ? WHERE number = ?`,
  )
  const applyEndEffects = openEndEffects(connection, context)

  return (row: EndingRow, end: End): void => {
    const { status, at, error, engineId, cost = 0 } = end
    const usage = withEarlierAttempts(end.usage ?? noUsage, row)
    const engine_id = engineId ?? row.engine_id
    const expires_at = row.retention_ms === null ? null : at + row.retention_ms
    const errorText = error ? JSON.stringify(error) : null
    finish.run(status, errorText, engine_id, ...usageValues(usage), cost, at, at, expires_at, row.number)
    applyEndEffects({ ...row, engine_id, expires_at }, row.status, { ...end, usage })
  }
}

/**
 * Completes the attempt of a claim, in one statement. Undefined: the claim no longer holds. Add its result and files to
 * the transaction before calling `follow`, which does the rest of the end.
 */
export function openCompletion(connection: Connection, context: EndWriting) {
  const finish = connection.prepare<unknown[], EndedRow>(
    `UPDATE jobs SET status = 'completed', boot = NULL, error = NULL, engine_id = coalesce(?, engine_id),
       ${addingUsageSets}, cost = ?, held = 0, updated_at = ?, finished_at = ?, expires_at = ? + retention_ms
     WHERE organization_id = ? AND id = ? AND status = 'processing' AND boot = ? AND claims = ?
     RETURNING ${endingColumns}, expires_at`,
  )
  const applyEndEffects = openEndEffects(connection, context)

  return {
    take(
      claim: JobClaim,
      { engineId, usage, cost, at }: Required<Omit<End, 'error' | 'status'>>,
    ): EndedRow | undefined {
      const { organizationId, id, boot, claims } = claim
      return finish.get(engineId, ...usageValues(usage), cost, at, at, at, organizationId, id, boot, claims)
    },
    /** `slotOf`: the model of the slot that is kept for the next node's job. */
    follow: (row: EndedRow, { usage = noUsage, ...end }: End, slotOf?: string): void =>
      applyEndEffects(
        row,
        'processing',
        { ...end, usage: { ...usage, gpuMs: row.gpu_ms ?? 0, energyMj: row.energy_mj } },
        slotOf,
      ),
  }
}

/** The error of a job that the store itself ends. */
export function errorOf(code: FailureCode, attempt: number, sentence: string): JobError {
  const { message, type, retryable } = new Failure(code, sentence)
  return { code, message, type, retryable, attempt }
}

/** The error of a node whose job was cancelled. */
export const cancelledError = errorOf('cancelled', 0, 'The job of the node was cancelled.')
