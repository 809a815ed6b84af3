import type { IdempotencyKey, JobRecord, NewJob, RowKey, Usage } from './job-records.ts'

export const batchStatuses = [
  'validating',
  'failed',
  'in_progress',
  'finalizing',
  'completed',
  'expired',
  'cancelling',
  'cancelled',
] as const
export type BatchStatus = (typeof batchStatuses)[number]

/** The types of events of batches. */
export const batchEventTypes = ['batch.completed', 'batch.failed', 'batch.expired', 'batch.cancelled'] as const
export type BatchEventType = (typeof batchEventTypes)[number]

/** What is wrong with the input file of a batch. */
export interface BatchFault {
  code: string
  message: string
  /** The member of the line; null if none is named. */
  param: string | null
  /** Number of the line, from 1; null for the whole file. */
  line: number | null
}

/** Why a line has no answer. */
export interface LineError {
  code: string
  message: string
  /** The field of the request that the message is about. */
  param?: string
}

export interface NewBatch {
  id: string
  organizationId: string
  tokenId: string
  /** Path of the endpoint of every line, such as `/v1/embeddings`. */
  endpoint: string
  inputFileId: string
  /** As it was requested, such as `24h`. */
  completionWindow: string
  /** How long its output files are kept, milliseconds; null: until they are removed. */
  outputLifetimeMs: number | null
  /** JSON text of an object, or null. */
  metadata: string | null
  /** The region that the request asked for; null if none. */
  region: string | null
  /** What this server's own URLs begin with for the caller. */
  origin: string
  /** The trace that it belongs to (W3C Trace Context), for the jobs of its lines; null or absent without one. */
  traceparent?: string | null
  /** The ids that its output files will have. */
  outputFileId: string
  errorFileId: string
  createdAt: number
  /** When its unfinished lines are given up, epoch milliseconds. */
  expiresAt: number
  idempotency: IdempotencyKey | null
}

export interface BatchRecord extends Omit<NewBatch, 'idempotency'> {
  status: BatchStatus
  /** How it ends; null while that is open. */
  ending: 'completed' | 'expired' | 'cancelled' | null
  /** The model of its first line; null before validation. */
  modelId: string | null
  faults: BatchFault[] | null
  inProgressAt: number | null
  finalizingAt: number | null
  cancellingAt: number | null
  /** When it completed, failed, expired or was cancelled. */
  finishedAt: number | null
  /** Lines of the input file. */
  total: number
  completed: number
  failed: number
  /** How many lines have become jobs or were refused, in the order of the file. */
  fed: number
  /** Number of the next line, from 1, and its first byte. */
  nextLine: number
  nextOffset: number
  /** Why no further line becomes a job; null if nothing prevents it. */
  restError: LineError | null
  /** What its lines have used so far. */
  usage: Required<Pick<Usage, 'inputTokens' | 'cachedTokens' | 'outputTokens' | 'reasoningTokens'>>
}

/** Lines of a batch that become jobs together. */
export interface BatchFeed extends RowKey {
  /** `fed` of the batch when the lines were read: a second feed of the same lines changes nothing. */
  fed: number
  jobs: readonly NewJob[]
  /** Lines that cannot become jobs. */
  refused: readonly { line: number; error: LineError }[]
  nextLine: number
  nextOffset: number
  at: number
}

/** A line that has become a job or was refused. */
export interface BatchLine {
  line: number
  /** Null: it was refused. */
  jobId: string | null
  status: 'running' | 'completed' | 'failed'
  error: LineError | null
}

/** Batches: their lines become jobs of class `batch`, and the end of such a job is counted in its transaction. */
export interface BatchStore {
  /**
   * Stores the batch, or returns the one that the same idempotency key created. Throws Failure `not_found` if the input
   * file does not exist.
   */
  create(batch: NewBatch): Promise<{ batch: BatchRecord; replayed: boolean }>
  find(organizationId: string, id: string): Promise<BatchRecord | undefined>
  /** In the order of their creation, newest first unless `oldestFirst`; `after` is the id of the last one of the page before. */
  list(
    organizationId: string,
    page: { limit: number; after?: string | undefined; oldestFirst?: boolean },
  ): Promise<BatchRecord[]>
  /** Those that have not ended, oldest first. */
  unfinished(): Promise<RowKey[]>
  /** Its input file is valid. False: it was not validating. */
  begin(key: RowKey, file: { total: number; modelId: string | null }, at: number): Promise<boolean>
  /** Ends it with the faults, without output files: its input is invalid, or it cannot go on. False: it has ended. */
  fail(key: RowKey, faults: readonly BatchFault[], at: number): Promise<boolean>
  /**
   * Turns the next lines into jobs, in one commit. Undefined: the batch is not in progress, or the lines were fed
   * before; then nothing changes. Throws the Failures of `jobs.submitAll`.
   */
  feed(feed: BatchFeed): Promise<JobRecord[] | undefined>
  /** From now on no line becomes a job; those that have not will fail with this error. */
  refuseRest(key: RowKey, error: LineError, at: number): Promise<boolean>
  /**
   * Idempotent until it is cancelled. Undefined: no such batch. Throws Failure `batch_not_cancellable` once it is
   * finalizing or has ended.
   */
  cancel(organizationId: string, id: string, at: number): Promise<BatchRecord | undefined>
  /** Gives up its unfinished lines. False: it was neither validating nor in progress. */
  expire(key: RowKey, at: number): Promise<boolean>
  /** Ends it, after its files were stored. False: it is not finalizing, or has unfinished jobs. */
  finish(key: RowKey, at: number): Promise<boolean>
  /** The lines of a range, both ends included, that have become jobs or were refused. */
  lines(key: RowKey, from: number, to: number): Promise<BatchLine[]>
  /** The ids of its jobs that have not ended. */
  running(key: RowKey): Promise<string[]>
  /** Deletes the line rows of batches that have ended, at most `limit`; returns how many. */
  sweep(limit: number): Promise<number>
}
