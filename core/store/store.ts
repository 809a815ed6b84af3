import type { Failure } from '../failure.ts'
import type { logLevels } from '../tasks/generation/protocol.ts'
import type { Task } from '../tasks/tasks.ts'
import type { ExecutionEvent, ExecutionStore, Moves, WorkflowStore } from './workflows.ts'

/**
 * The durable state of the platform. Every method is one atomic transaction: when its promise resolves, what it did
 * survives `kill -9` and power loss (on a disk that honours fsync). Ids are minted by the caller; times are epoch
 * milliseconds. No SQL and no transaction handle outside this folder. Today SQLite in a writer thread; PostgreSQL later.
 * Every method rejects with Failure: `disk_full` (read-only below the free-space mark), `shutting_down`, or what its
 * own line says.
 */
export interface Store {
  organizations: {
    /** `conflict` when the id or the name is taken. */
    create(organization: NewOrganization): Promise<Organization>
    list(): Promise<Organization[]>
    find(id: string): Promise<Organization | undefined>
  }
  tokens: {
    create(token: NewToken): Promise<TokenRecord>
    /** Hot path: synchronous, one prepared SELECT on a read-only connection (about 2 µs), so a revoke counts at once. */
    verify(publicId: string): VerifiableToken | undefined
    find(organizationId: string, id: string): Promise<TokenRecord | undefined>
    /** Newest first; `after` is the id of the last one seen. */
    list(organizationId: string, page: { limit: number; after?: string; status?: TokenStatus }): Promise<TokenRecord[]>
    update(organizationId: string, id: string, change: TokenChange): Promise<TokenRecord | undefined>
    /** Idempotent. Returns undefined when the organization has no such token. */
    revoke(organizationId: string, id: string, at: number): Promise<TokenRecord | undefined>
    /** Creates `next` and lets the old one live until `previousValidUntil`, in one transaction. */
    rotate(
      organizationId: string,
      id: string,
      next: NewToken,
      previousValidUntil: number,
    ): Promise<TokenRecord | undefined>
    /** How many active tokens of the organization hold the scope. */
    countActive(organizationId: string, scope: string, at: number): Promise<number>
    /** Batched `last_used_at`; at most once a minute a token. */
    touch(uses: { id: string; at: number }[]): Promise<void>
  }
  jobs: {
    /**
     * Stores a pending job, or answers with the one that the same idempotency key made within 24 h.
     * Same key and another body hash: Failure `idempotency_key_reused`. Its job is not kept: `output_expired`, unless
     * it was removed without having begun.
     */
    submit(job: NewJob): Promise<{ job: JobRecord; replayed: boolean }>
    /** The job that a submit with this key would be answered with, before anything is done for it. Throws like `submit`. */
    keyed(organizationId: string, key: { key: string; bodyHash: string }, now: number): Promise<JobRecord | undefined>
    /** How many jobs wait, by model and organization; those that are not due yet are left out. Counted: for the start. */
    backlog(): Promise<{ modelId: string; organizationId: string; jobs: number }[]>
    /** Those of one model and organization that wait and are due, by rank, from `from` on (that rank included). */
    waiting(want: { modelId: string; organizationId: string; from: number; limit: number }): Promise<WaitingJob[]>
    /** Delayed jobs that have come due: from now on they are among `waiting`. At most `limit`, the earliest first. */
    wake(now: number, limit: number): Promise<WaitingJob[]>
    /** When the next delayed job comes due or the next start deadline passes, epoch milliseconds; null when none will. */
    nextDue(): Promise<number | null>
    /** A pending job that is due becomes processing: attempt + 1, fenced by this boot. Undefined: it is not pending any more. */
    claim(organizationId: string, id: string, now: number): Promise<JobRecord | undefined>
    /** Pending jobs whose start deadline has passed end as failed (`timeout`). At most `limit`. */
    expire(now: number, limit: number): Promise<JobRecord[]>
    /** Ends one attempt. A claim of another boot or attempt, or a job already ended, changes nothing: `settled` is false and the late result is counted. */
    settle(claim: JobClaim, outcome: JobOutcome): Promise<{ settled: boolean; job: JobRecord | undefined }>
    /** Gives a claimed job back without charging the attempt (drain, no capacity). 0: due at once. */
    release(claim: JobClaim, notBefore: number): Promise<boolean>
    /** pending or processing becomes cancelled; cancelled stays; anything else: Failure `job_already_finished`. Undefined: no such job here. */
    cancel(organizationId: string, id: string, at: number): Promise<JobRecord | undefined>
    find(organizationId: string, id: string): Promise<JobRecord | undefined>
    /** Whether there was such a job, and it was removed or its time is over: then only the ledger knows it. */
    gone(organizationId: string, id: string): Promise<boolean>
    /**
     * Newest first, synchronous calls among them (their inputs and results are not kept). What is listed has neither
     * inputs nor result (`null`). A page may hold fewer than `limit` although there are more: a rare kind is looked for
     * in a bounded number of rows, and `next` says where to go on; null: that was all.
     */
    list(organizationId: string, filter: JobFilter): Promise<{ jobs: JobRecord[]; next: string | null }>
    /** What its runs have said, oldest first, as JSON text of LogLine[]; `[]` where nothing was. */
    logs(organizationId: string, id: string): Promise<string>
    /**
     * Forgets a job that has ended: record, inputs, result, logs, events, and its files are no longer there for anybody
     * (their bytes are freed by the files' owner). What it cost stays in the ledger. Undefined: no such job here.
     * Throws Failure `conflict` while it is pending or processing.
     */
    remove(organizationId: string, id: string, at: number): Promise<true | undefined>
    /** Forgets jobs, events and idempotency keys whose time is over, at most `limit` of each; how many. */
    sweep(now: number, limit: number): Promise<number>
    /** Finished synchronous calls, many at a time: one ledger row each, by which `find` finds them too. */
    record(finished: FinishedJob[]): Promise<void>
    /** Of queued jobs; synchronous calls are in the ledger only. */
    counts(): Promise<Record<JobStatus, number>>
  }
  /** What has happened to jobs, kept for 24 hours; written in the transaction in which it happened. */
  events: {
    /** Those after the sequence number, oldest first; of one job, or of the whole organization. */
    after(organizationId: string, want: { sequence: number; jobId?: string; limit: number }): Promise<JobEvent[]>
    /** Those of an execution and of its nodes. */
    ofExecution(
      organizationId: string,
      want: { sequence: number; executionId: string; limit: number },
    ): Promise<ExecutionEvent[]>
    /** The newest sequence number there is; 0 where there is none. */
    last(): Promise<number>
  }
  /** Answers to synchronous requests that came with an idempotency key, kept for 24 hours. */
  replies: {
    find(digest: string): Promise<StoredReply | undefined>
    keep(digest: string, reply: StoredReply): Promise<void>
  }
  files: {
    add(file: NewFile): Promise<FileRecord>
    /** By its id alone: for signed addresses, whose signature stands for the right to read. Removed ones too. */
    find(id: string): Promise<FileRecord | undefined>
    /** Newest first. Removed ones are not listed. */
    list(organizationId: string, page: { limit: number; after?: string; purpose?: FilePurpose }): Promise<FileRecord[]>
    /** Idempotent. Undefined: the organization has no such file. */
    remove(organizationId: string, id: string, at: number): Promise<FileRecord | undefined>
    /** Removes those whose time is over, and tells which files' bytes may go: at most `limit`. */
    expire(now: number, limit: number): Promise<FileRecord[]>
    /** The bytes of these are gone. The rows stay, so that an old address can be told from a wrong one. */
    erased(ids: readonly string[]): Promise<void>
  }
  /** The videos of an organization, entered when their job ends. */
  library: {
    list(organizationId: string, filter: LibraryFilter): Promise<{ items: LibraryItem[]; next: string | null }>
    find(organizationId: string, id: string): Promise<LibraryItem | undefined>
    /** Removes the entry and its files. Undefined: the organization has no such entry. */
    remove(organizationId: string, id: string, at: number): Promise<LibraryItem | undefined>
  }
  workflows: WorkflowStore
  executions: ExecutionStore
  /** Calls the listener with what each commit moves; there is one. Set before the first job is claimed. */
  onMoves(listener: (moves: Moves) => void): void
  /** What was found and repaired when the store was opened. */
  readonly recovery: { requeued: number; crashed: number; migratedFrom: number | null; bootId: string }
  stats(): StoreStats
  /** Online copy to a new file, verified after writing; writers go on. Returns its size in bytes. */
  backup(to: string, onProgress?: (done: number, total: number) => void): Promise<{ bytes: number }>
  close(): Promise<void>
}

export interface StoreStats {
  /** `ready`, or read-only with the reason as a sentence. */
  writable: true | string
  queuedCommands: number
  commits: number
  commands: number
  lateResults: number
  ledgerRows: number
}

export interface NewOrganization {
  id: string
  name: string
  plan: Plan
  /** Requests a minute; null takes the plan's figure, 0 is unlimited. */
  requestsPerMinute: number | null
  jobsPerMinute: number | null
  createdAt: number
}
export interface Organization extends NewOrganization {
  status: 'active' | 'disabled'
}

export const plans = ['free', 'pro', 'enterprise'] as const
export type Plan = (typeof plans)[number]

export const scopes = ['user:read', 'user:write', 'admin:read', 'admin:write'] as const
export type Scope = (typeof scopes)[number]

export type TokenStatus = 'active' | 'disabled' | 'revoked' | 'expired'

export interface NewToken {
  id: string
  /** The 12 characters inside the secret by which the row is found. */
  publicId: string
  organizationId: string
  name: string
  scopes: Scope[]
  /** HMAC-SHA256 of the whole secret, 32 bytes. */
  digest: Uint8Array
  /** Its last four characters. */
  hint: string
  /** Model ids or globs that it may use; null means all. */
  models: string[] | null
  createdAt: number
  expiresAt: number | null
  /** Id of the token that created it; null for the command line. */
  createdBy: string | null
}

export interface TokenRecord extends Omit<NewToken, 'digest' | 'publicId'> {
  status: TokenStatus
  lastUsedAt: number | null
}

export type TokenChange = Partial<Pick<NewToken, 'name' | 'scopes' | 'expiresAt' | 'models'>> & {
  status?: 'active' | 'disabled'
}

/** What authentication needs of a token and its organization, in one row. */
export interface VerifiableToken {
  id: string
  organizationId: string
  organizationName: string
  organizationStatus: 'active' | 'disabled'
  plan: Plan
  requestsPerMinute: number | null
  jobsPerMinute: number | null
  name: string
  scopes: Scope[]
  digest: Buffer
  hint: string
  models: string[] | null
  status: 'active' | 'disabled' | 'revoked'
  createdAt: number
  expiresAt: number | null
  lastUsedAt: number | null
}

export const jobStatuses = ['pending', 'processing', 'completed', 'failed', 'cancelled'] as const
export type JobStatus = (typeof jobStatuses)[number]

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
  /** Higher is sooner. */
  priority: number
  /**
   * Its place among the jobs of its organization and model: the lowest is first. Microseconds of its arrival, less a
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
  idempotency: { key: string; bodyHash: string } | null
}

export interface JobRecord extends Omit<NewJob, 'idempotency'> {
  kind: 'async' | 'sync'
  status: JobStatus
  /** Attempts that count against `maxAttempts`: a released one does not. */
  attempt: number
  /** How often it was claimed, whether that was charged or not: the fencing token. */
  claims: number
  boot: string | null
  engineId: string | null
  /** JSON text of the task's result, or null. */
  result: string | null
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
  rank: number
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
  level: (typeof logLevels)[number]
  message: string
}

export interface StoredReply {
  bodyHash: string
  status: number
  body: string
  jobId: string | null
  createdAt: number
}

export const filePurposes = ['upload', 'input', 'output', 'thumbnail'] as const
export type FilePurpose = (typeof filePurposes)[number]

export interface NewFile {
  id: string
  organizationId: string
  purpose: FilePurpose
  /** As a reader would save it. */
  name: string
  contentType: string
  bytes: number
  /** Hex. */
  sha256: string
  width: number | null
  height: number | null
  durationMs: number | null
  /** The job that made it or was given it. */
  jobId: string | null
  createdAt: number
  /** Null: kept until it is removed. */
  expiresAt: number | null
}
export interface FileRecord extends NewFile {
  /** When it was removed or ran out; its bytes may be gone since. */
  removedAt: number | null
}

export interface NewLibraryItem {
  /** The id of its video file. */
  id: string
  organizationId: string
  jobId: string
  task: Task
  modelId: string
  prompt: string
  seed: number
  fps: number
  numFrames: number
  thumbnailId: string | null
  createdAt: number
}
export interface LibraryItem extends NewLibraryItem {
  file: FileRecord
}

export interface LibraryFilter {
  limit: number
  after?: string
  /** Words that the prompt holds, in any case. */
  search?: string
  modelId?: string
  createdAfter?: number
  createdBefore?: number
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
      result: string
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
