import type { Failure } from '../failure.ts'
import type { LogLevel } from '../schemas/log-level.ts'
import type { Task } from '../schemas/task.ts'
import type { NewFile, NewLibraryItem } from './file-records.ts'
import type { JobClass, StoredJobClass } from './job-class.ts'
import type { LargeResult } from './large-result.ts'

export const jobStatuses = ['pending', 'processing', 'completed', 'failed', 'cancelled'] as const
export type JobStatus = (typeof jobStatuses)[number]

/** What a repeated submission is recognized by. */
export interface IdempotencyKey {
  key: string
  bodyHash: string
  /** Steady time (core/steady-time.ts), so that a clock that is set forward ends no window; `createdAt` when absent. */
  at?: number | undefined
}

export interface NewJob {
  id: string
  organizationId: string
  tokenId: string
  task: Task
  modelId: string
  /** The slug under which it was asked for; null for one that came by its model. */
  slug: string | null
  /** JSON text. */
  inputs: string
  /** The priority class in which it waits; `async` where none is given. */
  class?: StoredJobClass
  /** Higher is sooner, within the class and the organization. */
  priority: number
  /**
   * Its place among the jobs of its organization, class and model: the lowest is first. Microseconds of its arrival, less a
   * head start of a minute for each point of priority: so that what is urgent overtakes, and nothing is overtaken for
   * ever.
   */
  rank: number
  maxAttempts: number
  /** It fails unless it has begun by then, epoch milliseconds. */
  startBy: number | null
  /** How long one attempt may run, milliseconds. */
  timeoutMs: number | null
  /** How long it and its files are kept after its end, milliseconds; null: until they are removed. */
  retentionMs: number | null
  /** When it may start; at or before `createdAt` means at once, whatever the clock does later. */
  notBefore: number
  createdAt: number
  metadata: string | null
  /** Scope of the key is organization, method and route: the caller has folded those in. */
  idempotency: IdempotencyKey | null
}

export interface JobRecord extends Omit<NewJob, 'idempotency' | 'class'> {
  kind: 'async' | 'sync'
  /** Of a synchronous call `interactive`. */
  class: JobClass
  status: JobStatus
  /** Attempts that count against `maxAttempts`: a released one does not. */
  attempt: number
  /** How often it was claimed, whether that was charged or not: the fencing token. */
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
  finishedAt: number | null
  /** When it is forgotten; null before its end, and where it is kept. */
  expiresAt: number | null
  /** The node of an execution that it is for. */
  parent: { executionId: string; nodeId: string } | null
}

export type JobError = { code: Failure['code']; message: string; type: string; retryable: boolean; attempt: number }

/** What the queue needs to know of a job that waits. */
export interface WaitingJob {
  id: string
  organizationId: string
  modelId: string
  class: JobClass
  rank: number
}

/** How many jobs of one model, class and organization wait and are due. */
export interface Backlog {
  modelId: string
  class: StoredJobClass
  organizationId: string
  jobs: number
}

/** Which waiting jobs are read: those of one model, class and organization, from a rank on. */
export interface WaitingQuery {
  modelId: string
  class: JobClass
  organizationId: string
  from: number
  limit: number
}

export interface JobFilter {
  limit: number
  /** Where the page before ended (`next`, or the id of its last job). */
  after?: string
  status?: JobStatus
  task?: Task
  modelId?: string
  kind?: 'async' | 'sync'
  /** Jobs of this execution. */
  executionId?: string
  /** Epoch milliseconds. */
  createdAfter?: number
  createdBefore?: number
  /** Exact values by name. */
  metadata?: Record<string, string>
}

export const jobEventTypes = [
  'job.created',
  'job.started',
  'job.retrying',
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

/**
 * The right to end one attempt. A job record as `claim` returned it is one. `claims` and not `attempt` is the fence:
 * giving a job back uncharged makes the attempt number come twice, the count of claims never does.
 */
export interface JobClaim {
  organizationId: string
  id: string
  boot: string | null
  claims: number
}

export interface Usage {
  inputTokens: number
  outputTokens: number
}

/** What its run has said is added to the job's log: JSON text of LogLine[], or null. */
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
      /** What it made, entered together with its end: their bytes are on the disk already. */
      files: NewFile[]
      library: NewLibraryItem[]
      /** What the inputs came to, where they are known only now: JSON text. */
      inputs?: string
      /** Under which the same work finds the result again. */
      cacheKey?: string
    }
  /** `retryAt` null: no further attempt. */
  | {
      status: 'failed'
      error: JobError
      retryAt: number | null
      engineId: string | null
      at: number
      logs: string | null
    }

/** A job after its end, as it is billed: what was said is not part of it. A synchronous call is kept as this alone. */
export interface FinishedJob {
  id: string
  organizationId: string
  tokenId: string
  task: Task
  modelId: string
  status: 'completed' | 'failed' | 'cancelled'
  error: JobError | null
  usage: Usage
  cost: number
  engineId: string | null
  createdAt: number
  startedAt: number | null
  finishedAt: number
}
