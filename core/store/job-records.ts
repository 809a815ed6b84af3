import type { Awaitable } from '../dag/execution-state.ts'
import type { Failure } from '../failure.ts'
import type { FallbackReason } from '../schemas/fallback-reason.ts'
import type { LogLevel } from '../schemas/log-level.ts'
import type { RegionLabel } from '../schemas/region.ts'
import type { Task } from '../schemas/task.ts'
import type { Usage } from '../usage.ts'
import type { NewFile, NewLibraryItem } from './file-records.ts'
import type { JobExcerpt, JobFilter } from './job-filter.ts'
import type { LargeResult } from './large-result.ts'
import type { CallsText } from './ledger-rows.ts'
import type { JobLimits } from './limits.ts'
import type { RequestWebhook } from './webhooks.ts'

/** The priority classes of a queue; the first is served first. */
export const jobClasses = ['interactive', 'workflow', 'async', 'batch'] as const
export type JobClass = (typeof jobClasses)[number]

/** The class of a stored job: interactive requests are in memory only. */
export type StoredJobClass = Exclude<JobClass, 'interactive'>

export type { Usage } from '../usage.ts'

export const jobStatuses = ['pending', 'processing', 'completed', 'failed', 'cancelled'] as const
export type JobStatus = (typeof jobStatuses)[number]

/**
 * The `notBefore` of a deferred job, which waits in no queue until `resume` gives it its inputs, and of a job that is set
 * aside. Epoch milliseconds, the last that a date can have.
 */
export const deferredUntil = 8_640_000_000_000_000

/** How a deferred job continues: with these inputs from a time on, or as a failed job. */
export type Resumption = { inputs: string; notBefore: number } | { error: JobError }

/** Identifies a repeated submission. */
export interface IdempotencyKey {
  key: string
  bodyHash: string
  /** Steady time (core/steady-time.ts), so that setting the clock forward does not expire it; `createdAt` if absent. */
  at?: number | undefined
}

export interface NewJob {
  id: string
  organizationId: string
  tokenId: string
  task: Task
  modelId: string
  /** The name by which the request chose its model; null or absent if it is `modelId`. */
  requestedModel?: string | null
  /** The trace that it belongs to (W3C Trace Context); null or absent without one. */
  traceparent?: string | null
  /** The slug of the request; null if the request named a model. */
  slug: string | null
  /** JSON text. */
  inputs: string
  /** The priority class in which it waits; `async` by default. */
  class?: StoredJobClass
  /** Higher runs sooner, within the class and the organization. */
  priority: number
  /**
   * Its order among the jobs of its organization, class and model: the lowest runs first. Microseconds of its arrival,
   * minus a minute for each point of priority: so urgent jobs overtake, but no job is overtaken for ever.
   */
  rank: number
  maxAttempts: number
  /** The job fails unless it has started by then, epoch milliseconds. */
  startBy: number | null
  /** How long one attempt may run, milliseconds. */
  timeoutMs: number | null
  /** How long it and its files are kept after its end, milliseconds; null: until they are removed. */
  retentionMs: number | null
  /** When it may start; at or before `createdAt` means at once, whatever the clock does later. */
  notBefore: number
  createdAt: number
  metadata: string | null
  /** The region in which it must run; null if any will do. */
  region?: RegionLabel | null
  /** Whether its request was passed on by another infer. */
  relayed?: boolean
  /** Where its events are sent besides the endpoints of the organization. */
  webhook?: RequestWebhook | null
  /** What it may cost, millionths of the currency unit, held until its end; 0 if absent. */
  held?: number
  /** The caller has included organization, method and route in the key. */
  idempotency: IdempotencyKey | null
  /** Limits of the organization that apply to new jobs. */
  limits?: JobLimits
  /** The line of a batch that it runs. */
  batch?: { id: string; line: number } | null
}

export interface JobRecord
  extends Omit<
    NewJob,
    'idempotency' | 'class' | 'limits' | 'held' | 'region' | 'relayed' | 'webhook' | 'batch' | 'requestedModel'
  > {
  requestedModel: string | null
  region: RegionLabel | null
  relayed: boolean
  webhook: RequestWebhook | null
  kind: 'async' | 'sync'
  /** Why it is done by another model than the requested one; null if it is not. */
  fallbackReason: FallbackReason | null
  /** `interactive` for a synchronous call. */
  class: JobClass
  status: JobStatus
  /** Attempts that count against `maxAttempts`: a released attempt does not. */
  attempt: number
  /** How many times it was claimed, including released attempts: the fencing token. */
  claims: number
  boot: string | null
  engineId: string | null
  /** JSON text of the task's result, or a handle of it when it is large, or null. */
  result: string | LargeResult | null
  error: JobError | null
  usage: Usage | null
  /** Millionths of the currency unit. */
  cost: number | null
  updatedAt: number
  startedAt: number | null
  /**
   * Milliseconds that it would have waited in the order of the queue, whichever models are loaded; null if it waited for no
   * load, or that order had not begun it yet.
   */
  referenceQueueMs: number | null
  /** Of a synchronous call: from the request to the first piece of text of its stream, milliseconds. Absent for jobs. */
  timeToFirstTokenMs?: number | null
  finishedAt: number | null
  /** When it is removed, epoch milliseconds; null before its end, and if it is kept. */
  expiresAt: number | null
  /** What it awaits while it is set aside (`executions.setAside`); null otherwise. */
  awaits: Awaitable | null
  /** The execution and node that it runs for, and the position of the item if it runs for one. */
  parent: { executionId: string; nodeId: string; item?: number } | null
  /** The batch and the number of the line that it runs; null for other jobs. */
  batch: { id: string; line: number } | null
}

export type JobError = Pick<Failure, 'code' | 'message' | 'type' | 'retryable'> & { attempt: number }

/** The error of a job whose attempt ended with this failure. */
export const jobErrorOf = ({ code, message, type, retryable }: Failure, attempt: number): JobError => ({
  code,
  message,
  type,
  retryable,
  attempt,
})

/** What the queue needs to know of a pending job. */
export type WaitingJob = Pick<JobRecord, 'id' | 'organizationId' | 'modelId' | 'class' | 'rank'>
export const waitingOf = ({ id, organizationId, modelId, class: jobClass, rank }: WaitingJob): WaitingJob => ({
  id,
  organizationId,
  modelId,
  class: jobClass,
  rank,
})

/** What decides whether a job that waits leaves its model. */
export interface WaitingJobDetails extends WaitingJob, Pick<JobRecord, 'maxAttempts' | 'fallbackReason'> {
  /** Since when it waits: its arrival, or when it became due again, epoch milliseconds. */
  since: number
}

/** The number of due pending jobs of one model, class and organization. */
export interface Backlog extends Pick<WaitingJob, 'modelId' | 'organizationId'> {
  class: StoredJobClass
  jobs: number
}

/** Selects pending jobs: those of one model, class and organization, starting at a rank. */
export interface WaitingQuery extends Pick<WaitingJob, 'modelId' | 'class' | 'organizationId'> {
  from: number
  limit: number
}

export const jobEventTypes = [
  'job.created',
  'job.started',
  'job.retrying',
  'job.waiting',
  'job.completed',
  'job.failed',
  'job.cancelled',
] as const
export type JobEventType = (typeof jobEventTypes)[number]

export interface JobEvent {
  /** Grows with every event of the installation. */
  sequence: number
  type: JobEventType
  jobId: string
  attempt: number
  at: number
  /** JSON text of a JobError: why the attempt of a `job.retrying` failed. Null for others, and if it was given back. */
  data: string | null
}

export interface LogLine {
  at: number
  level: LogLevel
  message: string
}

export interface IdempotencyRecord {
  bodyHash: string
  status: number
  body: string
  jobId: string | null
  createdAt: number
}

/** Identifies an object of an organization. */
export type RowKey = Pick<JobRecord, 'organizationId' | 'id'>

/**
 * The right to end one attempt. A job record returned by `claim` is one. `claims` and not `attempt` is the fencing
 * token: an attempt number repeats after an uncharged release, the count of claims never does.
 */
export type JobClaim = Pick<JobRecord, 'organizationId' | 'id' | 'boot' | 'claims'>

/** The outcome of an attempt. `logs` is appended to the job's log: JSON text of LogLine[], or null. */
export type JobOutcome =
  | {
      status: 'completed'
      /** JSON text, or the same in UTF-8. */
      result: string | Uint8Array
      usage: Usage
      cost: number
      engineId: string | null
      at: number
      logs: string | null
      /** Its output files, added in the commit of its end: their bytes are on disk already. */
      files: NewFile[]
      library: NewLibraryItem[]
      /** JSON text of the inputs, if they are known only now. */
      inputs?: string
      /** The cache key under which the same work finds the result again. */
      cacheKey?: string
    }
  /** `retryAt` null: no further attempt. */
  | {
      status: 'failed'
      error: JobError
      /** The time on the slot, which no one pays for; none if absent. */
      usage?: Usage
      retryAt: number | null
      /** The model that does the job from the next attempt on, with as many attempts as the one before. */
      fallback?: { modelId: string; reason: FallbackReason; held: number }
      engineId: string | null
      at: number
      logs: string | null
    }

/** An ended job as it is billed, without its logs. A synchronous call is stored as this alone. */
export interface FinishedJob
  extends Pick<JobRecord, 'id' | 'organizationId' | 'tokenId' | 'task' | 'modelId' | 'error' | 'engineId'>,
    Pick<JobRecord, 'createdAt' | 'startedAt' | 'referenceQueueMs' | 'timeToFirstTokenMs'> {
  requestedModel?: string | null
  fallbackReason?: FallbackReason | null
  status: 'completed' | 'failed' | 'cancelled'
  usage: Usage
  cost: number
  finishedAt: number
}

/** How much earlier one point of priority ranks a job, in microseconds: a minute. */
const headStart = 60_000_000

/**
 * A job's order among those of its organization, class and model, from its arrival in microseconds: the lowest runs
 * first.
 */
export const rankAt = (arrived: number, priority: number): number => arrived - priority * headStart

/** A completed run of a task on a model. */
export interface RecentRun {
  /** Milliseconds. */
  runMs: number
  /** Millionths of the currency unit. */
  cost: number
}

export interface JobStore {
  /**
   * Stores a pending job, or returns the job that the same idempotency key created within 24 h. Throws Failure
   * `idempotency_key_reused` for the same key with another body hash, and `output_expired` if the key's job is no
   * longer kept, unless it was removed before it started. With `limits`, throws `queue_full` and `storage_full` if a
   * limit of the organization forbids the job: checked and counted in one transaction, so that it is exact.
   */
  submit(job: NewJob): Promise<{ job: JobRecord; replayed: boolean }>
  /** Submits several jobs in one commit, each as `submit` does: all of them, or none. */
  submitAll(jobs: readonly NewJob[]): Promise<{ job: JobRecord; replayed: boolean }[]>
  /** The last completed runs of a task on a model, of jobs and calls, at most 64, in no order. */
  recentRuns(organizationId: string, work: { modelId: string; task: string }): Promise<RecentRun[]>
  /** Returns the job that `submit` would return for this key, without submitting. Throws like `submit`. */
  findByKey(organizationId: string, key: IdempotencyKey, now: number): Promise<JobRecord | undefined>
  /** The deferred jobs, oldest first. Scans all of them: call it only at the start. */
  deferred(): Promise<RowKey[]>
  /** Ends the deferral of a job. Undefined: it is not deferred any more, and nothing changes. */
  resume(organizationId: string, id: string, how: Resumption, at: number): Promise<JobRecord | undefined>
  /** Counts the due pending jobs by model, class and organization. Scans all of them: call it only at the start. */
  backlog(): Promise<Backlog[]>
  /** Due pending jobs of one model, class and organization, by rank, starting at rank `from` (included). */
  waiting(query: WaitingQuery): Promise<WaitingJob[]>
  /** The same jobs with details. */
  waitingDetails(query: WaitingQuery): Promise<WaitingJobDetails[]>
  /** Delayed jobs that have become due: from now on `waiting` returns them. At most `limit`, the earliest first. */
  wake(now: number, limit: number): Promise<WaitingJob[]>
  /**
   * When the next delayed job becomes due or the next start deadline passes, epoch milliseconds; null if there is
   * none.
   */
  nextDue(): Promise<number | null>
  /**
   * Moves a due pending job to processing: attempt + 1, fenced by this boot. Undefined: the job is no longer pending.
   * `behindMs`: how much later this is than in the reference order, milliseconds.
   */
  claim(organizationId: string, id: string, now: number, behindMs?: number | null): Promise<JobRecord | undefined>
  /**
   * Fails a job whose claim or end the store has refused with an error: it would be tried again without end. False: it
   * has ended.
   */
  giveUp(organizationId: string, id: string, at: number): Promise<boolean>
  /** Fails pending jobs whose start deadline has passed (`timeout`). At most `limit`. */
  expire(now: number, limit: number): Promise<JobRecord[]>
  /**
   * Ends one attempt. False: the claim is of another boot or attempt, or the job has ended; then nothing changes and
   * the late result is counted. `next`: the model for which the caller keeps a slot; one of the node jobs that this
   * end releases and that can run on the slot is claimed in the same commit (`CommitEffects.claimedSuccessors`).
   */
  settle(claim: JobClaim, outcome: JobOutcome, next?: string): Promise<boolean>
  /**
   * Returns a claimed job to the queue without charging the attempt (drain, no capacity). 0: due at once. False: the
   * claim no longer holds, and nothing changes.
   */
  release(claim: JobClaim, notBefore: number): Promise<boolean>
  /**
   * Cancels a pending or processing job; a cancelled job stays cancelled; otherwise Failure `job_already_finished`.
   * Undefined: no such job.
   */
  cancel(organizationId: string, id: string, at: number): Promise<JobRecord | undefined>
  find(organizationId: string, id: string): Promise<JobRecord | undefined>
  /** Whether the job existed and was removed or expired: then only the ledger still has it. */
  wasRemoved(organizationId: string, id: string): Promise<boolean>
  /**
   * Newest first, including synchronous calls (their inputs and results are not kept). Listed jobs have neither
   * inputs nor result (`null`). A page may hold fewer than `limit` jobs although there are more, because a rare kind
   * is searched for in a bounded number of rows; `next` is the cursor of the next page, null at the end.
   */
  list(organizationId: string, filter: JobFilter): Promise<{ jobs: JobRecord[]; next: string | null }>
  /** The excerpts of these stored jobs, without those that the organization does not have. */
  excerpts(organizationId: string, ids: readonly string[]): Promise<JobExcerpt[]>
  /** The log lines of its runs, oldest first, as JSON text of LogLine[]; `[]` if there are none. */
  logs(organizationId: string, id: string): Promise<string>
  /**
   * Removes a job that has ended: record, inputs, result, logs and events. Its files are no longer readable (the
   * files' owner frees their bytes). Its cost stays in the ledger. Undefined: no such job. Throws Failure `conflict`
   * while it is pending or processing.
   */
  remove(organizationId: string, id: string, at: number): Promise<true | undefined>
  /**
   * Removes expired jobs, responses, events and idempotency keys, at most `limit` of each; returns how many. `keysNow` is the
   * steady time, by which keys expire; `now` if absent.
   */
  sweep(now: number, limit: number, keysNow?: number): Promise<number>
  /**
   * Records finished synchronous calls, many at a time: one ledger row each. When it resolves, `find` returns them: a
   * caller that keeps the records until then, and reads them before the store, never misses one. Skips calls that are
   * recorded already, so that a batch may be sent again.
   */
  record(finished: readonly (FinishedJob | CallsText)[]): Promise<void>
  /** Of stored jobs; synchronous calls are in the ledger only. */
  counts(): Promise<Record<JobStatus, number>>
}

/** Replies to synchronous requests with an idempotency key, kept for 24 hours. */
export interface IdempotencyStore {
  find(digest: string): Promise<IdempotencyRecord | undefined>
  keep(digest: string, reply: IdempotencyRecord): Promise<void>
}
