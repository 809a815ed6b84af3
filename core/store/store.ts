import type {
  NewOrganization,
  NewToken,
  Organization,
  TokenChange,
  TokenRecord,
  TokenStatus,
  VerifiableToken,
} from './account-records.ts'
import type { FilePurpose, FileRecord, LibraryFilter, LibraryItem, NewFile } from './file-records.ts'
import type {
  Backlog,
  FinishedJob,
  IdempotencyRecord,
  JobClaim,
  JobEvent,
  JobFilter,
  JobOutcome,
  JobRecord,
  JobStatus,
  NewJob,
  WaitingJob,
  WaitingQuery,
} from './job-records.ts'
import type { CommitEffects, ExecutionEvent, ExecutionStore, OrganizationEvent, WorkflowStore } from './workflows.ts'

// What the store takes and gives, by subject.
export * from './account-records.ts'
export * from './file-records.ts'
export * from './job-class.ts'
export * from './job-records.ts'
export * from './large-result.ts'

/**
 * The durable state of the platform. What every method guarantees:
 * - It is one atomic transaction. Where it rejects, it has changed nothing.
 * - When the promise of a write resolves, the write survives `kill -9` and power loss (on a disk that honours fsync).
 * - A read that is called after a write has resolved sees that write, and all writes that were committed before it.
 *   Nothing follows from the turn of the event loop in which a read is called or answered: between two calls, anything
 *   may have been committed.
 * - Listeners of `onCommitted` hear of a commit after it, and before or after the promise of the write that it belongs to.
 * - It rejects with Failure: `disk_full` (read-only below the free-space mark), `shutting_down`, or what its own line
 *   says.
 * Ids are minted by the caller; times are epoch milliseconds. No SQL and no transaction handle outside this folder.
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
    /**
     * The token and its organization, for authentication. Synchronous, because every request passes here before anything
     * else: a promise in between would cost more than the look-up (about 5 µs on SQLite). So a store keeps its tokens
     * where they can be read at once, in a local database or in memory. What `revoke`, `update` and `rotate` of this
     * store have changed counts when their promise resolves; a change by another process counts within a second.
     */
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
    /** How many due jobs wait, by model, class and organization. Goes through all that wait: call it at the start only. */
    backlog(): Promise<Backlog[]>
    /** Jobs of one model, class and organization that wait and are due, by rank, from `from` on (that rank included). */
    waiting(want: WaitingQuery): Promise<WaitingJob[]>
    /** Delayed jobs that have come due: from now on they are among `waiting`. At most `limit`, the earliest first. */
    wake(now: number, limit: number): Promise<WaitingJob[]>
    /** When the next delayed job comes due or the next start deadline passes, epoch milliseconds; null when none will. */
    nextDue(): Promise<number | null>
    /** A pending job that is due becomes processing: attempt + 1, fenced by this boot. Undefined: it is not pending any more. */
    claim(organizationId: string, id: string, now: number): Promise<JobRecord | undefined>
    /** Pending jobs whose start deadline has passed end as failed (`timeout`). At most `limit`. */
    expire(now: number, limit: number): Promise<JobRecord[]>
    /**
     * Ends one attempt. False: a claim of another boot or attempt, or a job already ended. Nothing changes then, and
     * the late result is counted. `next`: the model of which a slot is kept; of the jobs of nodes that this end
     * releases, one that can run on it begins in the same commit (`CommitEffects.handedOn`).
     */
    settle(claim: JobClaim, outcome: JobOutcome, next?: string): Promise<boolean>
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
    /**
     * Forgets jobs, events and idempotency keys whose time is over, at most `limit` of each; how many. `keysNow` is the
     * steady time, by which keys are kept; `now` when absent.
     */
    sweep(now: number, limit: number, keysNow?: number): Promise<number>
    /**
     * Finished synchronous calls, many at a time: one ledger row each. When it resolves, `find` finds them: whoever keeps
     * the records until then and is asked before the store never misses one. Those that are there already are passed
     * over, so that a batch may be sent again.
     */
    record(finished: FinishedJob[]): Promise<void>
    /** Of queued jobs; synchronous calls are in the ledger only. */
    counts(): Promise<Record<JobStatus, number>>
  }
  /** What has happened to jobs, kept for 24 hours; written in the transaction in which it happened. */
  events: {
    /** Those after the sequence number, oldest first; of one job, or of the whole organization. */
    after(organizationId: string, want: { sequence: number; jobId?: string; limit: number }): Promise<JobEvent[]>
    /** The same of jobs and executions alike. */
    ofOrganization(organizationId: string, want: { sequence: number; limit: number }): Promise<OrganizationEvent[]>
    /** Those of an execution and of its nodes. */
    ofExecution(
      organizationId: string,
      want: { sequence: number; executionId: string; limit: number },
    ): Promise<ExecutionEvent[]>
    /** The newest sequence number there is; 0 where there is none. */
    last(): Promise<number>
  }
  /** Answers to synchronous requests that came with an idempotency key, kept for 24 hours. */
  idempotency: {
    find(digest: string): Promise<IdempotencyRecord | undefined>
    keep(digest: string, reply: IdempotencyRecord): Promise<void>
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
  /**
   * Calls the listener, in this process, once with what each commit has moved, in the order of the commits; there is one
   * listener. Set before the first job is claimed.
   */
  onCommitted(listener: (effects: CommitEffects) => void): void
  /** What was found and repaired when the store was opened. */
  readonly recovery: { requeued: number; crashed: number; migratedFrom: number | null; bootId: string }
  stats(): StoreStats
  /** Online copy to a new file, large results inside, verified after writing; writers go on. Returns its size in bytes. */
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
