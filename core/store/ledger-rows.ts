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
export const ledgerColumns = [
  ...chainedColumns,
  'reference_queue_ms',
  'requested_model',
  'fallback_reason',
  'time_to_first_token_ms',
] as const
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
    job.timeToFirstTokenMs ?? null,
  )
}

/** The rows of finished synchronous calls. */
export function callRows(calls: readonly FinishedJob[]): LedgerRows {
  const rows: LedgerRows = []
  for (const call of calls) addLedgerRow(rows, 'sync', call)
  return rows
}

/** The rows of so many finished synchronous calls as one JSON text, which processes pass on without reading it. */
export interface CallsText {
  text: string
  calls: number
}

/** Whether a record is the text of many. */
export const isText = (record: FinishedJob | CallsText): record is CallsText => 'text' in record

/** Reads the calls of such a text. */
export function callsIn(text: string): FinishedJob[] {
  const rows = JSON.parse(text) as LedgerRows
  const width = ledgerColumns.length
  return Array.from({ length: rows.length / width }, (_, index) => callAt(rows.slice(index * width)))
}

/** The values of a row, each of the type of its member. */
type RowValues = Record<Exclude<LedgerColumn, 'error'>, never> & { error: string | null }

function callAt(row: LedgerRows): FinishedJob {
  const of = Object.fromEntries(ledgerColumns.map((name, at) => [name, row[at]])) as unknown as RowValues
  return {
    id: of.job_id,
    organizationId: of.organization_id,
    tokenId: of.token_id,
    task: of.task,
    modelId: of.model_id,
    engineId: of.engine_id,
    status: of.status,
    error: of.error === null ? null : (JSON.parse(of.error) as FinishedJob['error']),
    usage: {
      inputTokens: of.input_tokens,
      outputTokens: of.output_tokens,
      cachedTokens: of.cached_tokens,
      reasoningTokens: of.reasoning_tokens,
      images: of.images,
      videoMs: of.video_ms,
      audioMs: of.audio_ms,
      characters: of.characters,
      documents: of.documents,
      gpuMs: of.gpu_ms,
      energyMj: of.energy_mj,
    },
    cost: of.cost,
    createdAt: of.created_at,
    startedAt: of.started_at,
    finishedAt: of.finished_at,
    referenceQueueMs: of.reference_queue_ms,
    requestedModel: of.requested_model,
    fallbackReason: of.fallback_reason,
    timeToFirstTokenMs: of.time_to_first_token_ms,
  }
}
