import type { Failure } from '../failure.ts'
import type { Task } from '../tasks/tasks.ts'

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
     * Same key and another body hash: Failure `idempotency_key_reused`.
     */
    submit(job: NewJob): Promise<{ job: JobRecord; replayed: boolean }>
    /**
     * Moves up to `limit` pending jobs that are due to processing: attempt + 1, fenced by this boot. Higher priority
     * first, then in the order of their submission; a job that comes back keeps its place. Models in `exclude` are
     * passed over, and `perModel` less what `running` says of a model bounds how many of it are taken.
     */
    claim(want: ClaimWish): Promise<JobRecord[]>
    /** Ends one attempt. A claim of another boot or attempt, or a job already ended, changes nothing: `settled` is false and the late result is counted. */
    settle(claim: JobClaim, outcome: JobOutcome): Promise<{ settled: boolean; job: JobRecord | undefined }>
    /** Gives a claimed job back without charging the attempt (drain, no capacity). 0: due at once. */
    release(claim: JobClaim, notBefore: number): Promise<boolean>
    /** pending or processing becomes cancelled; cancelled stays; anything else: Failure `job_already_finished`. Undefined: no such job here. */
    cancel(organizationId: string, id: string, at: number): Promise<JobRecord | undefined>
    find(organizationId: string, id: string): Promise<JobRecord | undefined>
    /** Finished synchronous calls, many at a time: one ledger row each, by which `find` finds them too. */
    record(finished: FinishedJob[]): Promise<void>
    /** Of queued jobs; synchronous calls are in the ledger only. */
    counts(): Promise<Record<JobStatus, number>>
  }
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
  queueId: string
  organizationId: string
  tokenId: string
  task: Task
  modelId: string
  /** JSON text. */
  inputs: string
  /** Higher is sooner. */
  priority: number
  maxAttempts: number
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
}

export type JobError = { code: Failure['code']; message: string; type: string; retryable: boolean; attempt: number }

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

export interface ClaimWish {
  limit: number
  now: number
  exclude?: string[]
  perModel?: number
  running?: Record<string, number>
}

export interface Usage {
  inputTokens: number
  outputTokens: number
}

export type JobOutcome =
  | { status: 'completed'; result: string; usage: Usage; cost: number; engineId: string | null; at: number }
  /** `retryAt` null: no further attempt. */
  | { status: 'failed'; error: JobError; retryAt: number | null; engineId: string | null; at: number }

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
