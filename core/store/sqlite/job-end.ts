import { Failure } from '../../failure.ts'
import { noUsage } from '../../usage.ts'
import { type JobClaim, type JobError, type JobStatus, jobErrorOf, type Usage } from '../store.ts'
import { selected } from './columns.ts'
import type { Connection } from './database.ts'
import type { ExecutionFlow } from './execution-flow.ts'
import type { JobRow } from './job-reads.ts'
import { addingUsageSets, usageSets, usageValues } from './usage-columns.ts'
import type { SharedContext } from './write-context.ts'

/** The columns needed to end a job; GPU time and energy are those of its earlier attempts, null before the first. */
export const endingColumns = selected(
  'number, organizationId, id, tokenId, task, modelId, engineId, status, attempt, retentionMs, createdAt, startedAt, referenceQueueMs, requestedModel, fallbackReason, execution, node, item, awaits, batch, batchLine, gpuMs, energyMj',
)
export interface EndingRow
  extends Pick<JobRow, 'number' | 'organizationId' | 'id' | 'tokenId' | 'task' | 'modelId' | 'engineId' | 'status'>,
    Pick<
      JobRow,
      | 'attempt'
      | 'retentionMs'
      | 'createdAt'
      | 'startedAt'
      | 'referenceQueueMs'
      | 'requestedModel'
      | 'fallbackReason'
      | 'execution'
      | 'node'
      | 'item'
      | 'awaits'
      | 'batch'
      | 'batchLine'
    > {
  gpuMs: number | null
  energyMj: number | null
}

export interface End {
  status: 'completed' | 'failed' | 'cancelled'
  at: number
  error?: JobError
  engineId?: string | null
  usage?: Usage
  cost?: number
}

/** The row of a job after its end. */
type EndedRow = EndingRow & Pick<JobRow, 'expiresAt'>

/** The part of the shared state that ending a job needs. */
type EndWriting = Pick<SharedContext, 'ledger' | 'jobCounts' | 'events' | 'batches'> & {
  flow: Pick<ExecutionFlow, 'load' | 'advance' | 'cancelNested'>
}

/** The effects of a job's end besides its row: expiry of its files, its ledger row, its event, its execution. */
function openEndEffects(connection: Connection, { ledger, jobCounts, events, flow, batches }: EndWriting) {
  const keepFiles = connection.statement`UPDATE files SET expires_at = ? WHERE job_id = ? AND removed_at IS NULL`

  return (row: EndedRow, before: JobStatus, given: End, slotOf?: string): void => {
    const { status, at, error, usage = noUsage, cost = 0 } = given
    const { number, organizationId, execution, node, item, batch, batchLine } = row
    keepFiles.run(row.expiresAt, row.id)
    jobCounts.move(organizationId, before, status)
    ledger.append({ ...row, status, error: error ?? null, usage, cost, finishedAt: at }, execution)
    const ofNode = item === null ? ([execution, node] as const) : []
    events.add(number, organizationId, `job.${status}`, row.attempt, at, ...ofNode)
    if (batch !== null && batchLine !== null) batches.lineEnded(batch, batchLine, status, usage, at)
    if (row.awaits === 'execution') flow.cancelNested(organizationId, row.id, at)
    if (execution === null || node === null) return
    const how = { ran: before === 'processing', waited: row.awaits !== null }
    const end = { node, status, spent: { ...usage, cost }, slotOf, at }
    flow.advance(
      execution,
      item === null ? { type: 'job_ended', ...how, ...end } : { type: 'item_ended', item, ran: how.ran, ...end },
      row.id,
    )
  }
}

/** Adds the GPU time and the energy of earlier attempts, which have failed or were interrupted. */
function withEarlierAttempts(usage: Usage, earlier: EndingRow): Usage {
  if (earlier.gpuMs === null) return usage
  if (usage.gpuMs === undefined) return { ...usage, gpuMs: earlier.gpuMs, energyMj: earlier.energyMj }
  const { energyMj = null } = usage
  return {
    ...usage,
    gpuMs: usage.gpuMs + earlier.gpuMs,
    energyMj: energyMj === null || earlier.energyMj === null ? null : energyMj + earlier.energyMj,
  }
}

/** Ends a job that was looked up before, in the caller's transaction. */
export function openEnd(connection: Connection, context: EndWriting) {
  const finish = connection.statement`UPDATE jobs
    SET status = ?, boot = NULL, error = ?, engine_id = ?, ${usageSets}, cost = ?, held = 0, awaits = NULL,
    updated_at = ?,
    finished_at = ?, expires_at = ? WHERE number = ?`
  const applyEndEffects = openEndEffects(connection, context)

  return (row: EndingRow, end: End): void => {
    const { status, at, error, cost = 0 } = end
    const engineId = end.engineId ?? row.engineId
    const usage = withEarlierAttempts(end.usage ?? noUsage, row)
    const expiresAt = row.retentionMs === null ? null : at + row.retentionMs
    const errorText = error ? JSON.stringify(error) : null
    context.flow.load(row.execution)
    finish.run(status, errorText, engineId, ...usageValues(usage), cost, at, at, expiresAt, row.number)
    applyEndEffects({ ...row, engineId, expiresAt }, row.status, { ...end, usage })
  }
}

/**
 * Completes the attempt of a claim, in one statement. Undefined: the claim no longer holds. Add its result and files to
 * the transaction before calling `follow`, which does the rest of the end.
 */
export function openCompletion(connection: Connection, context: EndWriting) {
  const finish = connection.query<EndedRow>`
    UPDATE jobs SET status = 'completed', boot = NULL, error = NULL, engine_id = coalesce(?, engine_id),
    ${addingUsageSets}, cost = ?, held = 0, updated_at = ?, finished_at = ?, expires_at = ? + retention_ms
    WHERE organization_id = ? AND id = ? AND status = 'processing' AND boot = ? AND claims = ?
    RETURNING ${endingColumns}, expires_at AS expiresAt`
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
        { ...end, usage: { ...usage, gpuMs: row.gpuMs ?? 0, energyMj: row.energyMj } },
        slotOf,
      ),
  }
}

/** The error of a node whose job was cancelled. */
export const cancelledError = jobErrorOf(new Failure('cancelled', 'The job of the node was cancelled.'), 0)
