import type { Usage } from '../usage.ts'
import type { FinishedJob, JobRecord } from './job-records.ts'

/**
 * Rows of the ledger, one after the other in one list: `ledgerColumns.length` values each, in the order of the columns,
 * JSON as text. Finished calls cross between threads in this form: a list of texts and numbers is copied in a third of
 * the time that objects or their JSON take, and its values are bound to the statement as they are.
 */
export type LedgerRows = LedgerValue[]
export type LedgerValue = string | number | null

/** The columns that every row has. */
export const firstColumns = [
  'job_id',
  'organization_id',
  'token_id',
  'kind',
  'task',
  'model_id',
  'engine_id',
  'status',
  'error',
  'input_tokens',
  'output_tokens',
  'cost',
  'created_at',
  'started_at',
  'finished_at',
] as const

/** The columns in the hash of a row, in this order; rows older than the measures have the first ones only. */
export const chainedColumns = [
  ...firstColumns,
  'cached_tokens',
  'reasoning_tokens',
  'images',
  'video_ms',
  'audio_ms',
  'characters',
  'documents',
  'gpu_ms',
  'energy_mj',
] as const

/** The columns that whoever finishes work knows; the writer adds sequence, hash and attribution. */
export const ledgerColumns = [...chainedColumns, 'reference_queue_ms', 'requested_model', 'fallback_reason'] as const
export type LedgerColumn = (typeof ledgerColumns)[number]

/** Adds the row of a finished job. Written out, because every request needs it. */
export function addLedgerRow(rows: LedgerRows, kind: JobRecord['kind'], job: FinishedJob): void {
  const usage: Usage = job.usage
  rows.push(
    job.id,
    job.organizationId,
    job.tokenId,
    kind,
    job.task,
    job.modelId,
    job.engineId,
    job.status,
    job.error && JSON.stringify(job.error),
    usage.inputTokens,
    usage.outputTokens,
    job.cost,
    job.createdAt,
    job.startedAt,
    job.finishedAt,
    usage.cachedTokens ?? 0,
    usage.reasoningTokens ?? 0,
    usage.images ?? 0,
    usage.videoMs ?? 0,
    usage.audioMs ?? 0,
    usage.characters ?? 0,
    usage.documents ?? 0,
    usage.gpuMs ?? 0,
    usage.energyMj ?? null,
    job.referenceQueueMs,
    job.requestedModel ?? null,
    job.fallbackReason ?? null,
  )
}

/** The rows of finished synchronous calls. */
export function callRows(calls: readonly FinishedJob[]): LedgerRows {
  const rows: LedgerRows = []
  for (const call of calls) addLedgerRow(rows, 'sync', call)
  return rows
}
