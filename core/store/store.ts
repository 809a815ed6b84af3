import type {
  ActiveWork,
  NewOrganization,
  NewToken,
  Organization,
  OrganizationChange,
  SessionRecord,
  TokenChange,
  TokenPage,
  TokenRecord,
  User,
  UserAct,
  UserChange,
  UserSummary,
  VerifiableToken,
} from './account-records.ts'
import type { Actor, AuditFilter, AuditRecord } from './audit-records.ts'
import type { BatchStore } from './batch-records.ts'
import type { OrganizationEvent } from './event-types.ts'
import type { ApiFilePage, FilePurpose, FileRecord, LibraryFilter, LibraryItem, NewFile } from './file-records.ts'
import type {
  Backlog,
  FinishedJob,
  IdempotencyKey,
  IdempotencyRecord,
  JobClaim,
  JobEvent,
  JobFilter,
  JobOutcome,
  JobRecord,
  JobStatus,
  NewJob,
  Resumption,
  RowKey,
  WaitingJob,
  WaitingQuery,
} from './job-records.ts'
import type { OrganizationUse, StorageLimits } from './limits.ts'
import type { ResponseRecord } from './response-records.ts'
import type { SpendStore } from './spend-records.ts'
import type { UsagePage, UsageQuery, UsageSums } from './usage-records.ts'
import type { WebhookStore } from './webhooks.ts'
import type { CommitEffects, ExecutionEvent, ExecutionStore, WorkflowStore } from './workflows.ts'

// The record types of the store, by subject.
export * from './account-records.ts'
export * from './audit-records.ts'
export * from './batch-records.ts'
export * from './event-types.ts'
export * from './file-records.ts'
export * from './job-records.ts'
export * from './large-result.ts'
export * from './limits.ts'
export * from './response-records.ts'
export * from './spend-records.ts'
export * from './usage-records.ts'
export * from './webhooks.ts'

/**
 * The durable state of the platform. Every method guarantees:
 * - It is one atomic transaction. If it rejects, it has changed nothing.
 * - When the promise of a write resolves, the write survives `kill -9` and power loss (on a disk that honours fsync).
 * - A read that is called after a write has resolved sees that write, and all writes that were committed before it.
 *   Do not rely on the event loop turn in which a read is called or answered: between two calls, anything may have been
 *   committed.
 * - Listeners of `onCommitted` are called after a commit, before or after the promise of its write resolves.
 * - It rejects with Failure: `disk_full` (read-only below the free-space mark), `shutting_down`, or the codes in its own
 *   comment.
 * Callers create ids; times are epoch milliseconds. No SQL and no transaction handle outside this folder.
 *
 * An implementation supplies the statements of each method: see method-table.ts.
 */
export interface StoreMethods {
  /** `by` is who the audit log names, in the same transaction; the server itself if absent. */
  organizations: {
    /** `conflict` when the id or the name is taken. */
    create(organization: NewOrganization, by?: Actor): Promise<Organization>
    /** Oldest first, deleted ones included. */
    list(): Promise<Organization[]>
    find(id: string): Promise<Organization | undefined>
    /** What it uses of its limits, exact at the time of the call. `dayStart`: when the day began, see `dayStartOf`. */
    use(id: string, dayStart: number): Promise<OrganizationUse>
    /**
     * Undefined: there is none. `conflict` when the name is taken, when it was deleted, and to rename the one that owns
     * the machine.
     */
    update(id: string, change: OrganizationChange, by: Actor, at: number): Promise<Organization | undefined>
    /** Suspends or resumes. Undefined: there is none. `conflict` when it was deleted, or owns the machine. */
    setStatus(id: string, status: 'active' | 'suspended', by: Actor, at: number): Promise<Organization | undefined>
    /** Ids of the suspended ones. Cheap. */
    suspended(): Promise<string[]>
    activeWork(id: string): Promise<ActiveWork>
    /** Cancels jobs and executions, at most `limit` of each. Returns how many; nothing is left after none. */
    cancelWork(id: string, at: number, limit: number): Promise<ActiveWork>
    /**
     * Marks it as deleted, revokes its tokens and removes its users; the name is free again. Undefined: there is none.
     * `conflict` while work is unfinished unless forced, and for the one that owns the machine.
     */
    remove(
      id: string,
      force: boolean,
      by: Actor,
      at: number,
    ): Promise<{ tokensRevoked: number; usersRemoved: number } | undefined>
    /** Deleted ones that have something left to erase. Cheap. */
    unerased(): Promise<string[]>
    /**
     * Erases objects of a deleted one, at most `limit` of each kind, and returns how many; `more`: call it again;
     * `done`: nothing is left.
     */
    erase(
      id: string,
      at: number,
      limit: number,
    ): Promise<{ files: number; workflows: number; more: boolean; done: boolean }>
  }
  /** Reads do not find users who were removed. */
  users: {
    /** `conflict` when the e-mail address is taken; `not_found` without the organization. */
    create(user: Omit<User, 'updatedAt' | 'removedAt'>, by: Actor): Promise<User>
    find(organizationId: string, id: string): Promise<User | undefined>
    summary(organizationId: string, id: string): Promise<UserSummary | undefined>
    /** Newest first; `after` is the id of the last user of the page before. */
    list(organizationId: string, page: { limit: number; after?: string }): Promise<UserSummary[]>
    /**
     * Scopes that the role does not allow are taken from his tokens; tokens without any are revoked. Undefined: no such
     * user. `conflict` for the last owner, a taken e-mail address, and, unless forced, the last tokens with admin:write.
     */
    update(
      organizationId: string,
      id: string,
      change: UserChange,
      act: UserAct,
    ): Promise<{ tokensNarrowed: number; tokensRevoked: number } | undefined>
    /** Revokes his tokens. Undefined and `conflict` as for `update`. */
    remove(organizationId: string, id: string, act: UserAct): Promise<{ tokensRevoked: number } | undefined>
  }
  /** Administrative acts, kept for ever. Each is recorded in the transaction of the act. */
  audit: {
    /** Newest first. A page may have fewer than `limit` records; `next` is the cursor of the next page, null at the end. */
    list(organizationId: string, filter: AuditFilter): Promise<{ records: AuditRecord[]; next: number | null }>
  }
  tokens: {
    /**
     * `not_found` without the organization; `invalid_value` without the user; `insufficient_scope` beyond his role.
     */
    create(token: NewToken, by?: Actor): Promise<TokenRecord>
    /**
     * Returns the token and its organization, for authentication. Synchronous, because every request starts here: a
     * promise would cost more than the look-up (about 5 µs on SQLite). So a store keeps its tokens where they can be
     * read at once, in a local database or in memory. Changes by `revoke`, `update` and `rotate` of this store take
     * effect when their promise resolves; changes by another process within a second.
     */
    verify(publicId: string): VerifiableToken | undefined
    /** The same by the token's own id, for callers that need no secret. */
    verifyId(id: string): VerifiableToken | undefined
    find(organizationId: string, id: string): Promise<TokenRecord | undefined>
    /** Newest first. */
    list(organizationId: string, page: TokenPage): Promise<TokenRecord[]>
    update(organizationId: string, id: string, change: TokenChange, by?: Actor): Promise<TokenRecord | undefined>
    /** Idempotent. Returns undefined when the organization has no such token. */
    revoke(organizationId: string, id: string, at: number, by?: Actor): Promise<TokenRecord | undefined>
    /** Creates `next` and keeps the old token valid until `previousValidUntil`, in one transaction. */
    rotate(
      organizationId: string,
      id: string,
      next: NewToken,
      previousValidUntil: number,
      by?: Actor,
    ): Promise<TokenRecord | undefined>
    /** How many active tokens of the organization hold the scope. */
    countActive(organizationId: string, scope: string, at: number): Promise<number>
    /** Batched `last_used_at`; at most once a minute a token. */
    touch(uses: { id: string; at: number }[]): Promise<void>
  }
  /** Sessions of the web console, by the SHA-256 of their id. */
  sessions: {
    /** Also removes expired ones, and the oldest of a token that has more than 50. */
    add(session: SessionRecord): Promise<void>
    /** Synchronous, as `tokens.verify`: every request of the console starts here. */
    find(digest: Uint8Array): SessionRecord | undefined
    /** Moves the ends of sessions, never to an earlier time. */
    extend(these: { digest: Uint8Array; expiresAt: number }[]): Promise<void>
    remove(digest: Uint8Array): Promise<void>
  }
  jobs: {
    /**
     * Stores a pending job, or returns the job that the same idempotency key created within 24 h. Throws Failure
     * `idempotency_key_reused` for the same key with another body hash, and `output_expired` if the key's job is no
     * longer kept, unless it was removed before it started. With `limits`, throws `queue_full` and `storage_full` if a
     * limit of the organization forbids the job: checked and counted in one transaction, so that it is exact.
     */
    submit(job: NewJob): Promise<{ job: JobRecord; replayed: boolean }>
    /** Submits several jobs in one commit, each as `submit` does: all of them, or none. */
    submitAll(jobs: readonly NewJob[]): Promise<{ job: JobRecord; replayed: boolean }[]>
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
    /** Delayed jobs that have become due: from now on `waiting` returns them. At most `limit`, the earliest first. */
    wake(now: number, limit: number): Promise<WaitingJob[]>
    /**
     * When the next delayed job becomes due or the next start deadline passes, epoch milliseconds; null if there is
     * none.
     */
    nextDue(): Promise<number | null>
    /**
     * Moves a due pending job to processing: attempt + 1, fenced by this boot. Undefined: the job is no longer pending.
     */
    claim(organizationId: string, id: string, now: number): Promise<JobRecord | undefined>
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
    record(finished: FinishedJob[]): Promise<void>
    /** Of stored jobs; synchronous calls are in the ledger only. */
    counts(): Promise<Record<JobStatus, number>>
  }
  /** What has happened to jobs, kept for 24 hours; each event is written in the transaction of its change. */
  events: {
    /** Events after the sequence number, oldest first; of one job, or of the whole organization. */
    after(organizationId: string, query: { sequence: number; jobId?: string; limit: number }): Promise<JobEvent[]>
    /** The same for jobs and executions together. */
    ofOrganization(organizationId: string, query: { sequence: number; limit: number }): Promise<OrganizationEvent[]>
    /** Events of an execution and of its nodes. */
    ofExecution(
      organizationId: string,
      query: { sequence: number; executionId: string; limit: number },
    ): Promise<ExecutionEvent[]>
    /** The newest sequence number; 0 if there is none. */
    last(): Promise<number>
  }
  /** Replies to synchronous requests with an idempotency key, kept for 24 hours. */
  idempotency: {
    find(digest: string): Promise<IdempotencyRecord | undefined>
    keep(digest: string, reply: IdempotencyRecord): Promise<void>
  }
  files: {
    /** With `limits`, throws Failure `storage_full` or `rate_limit` (uploads of the day) if one forbids the file. */
    add(file: NewFile, limits?: StorageLimits): Promise<FileRecord>
    /** Throws what `add` would throw for such a file. */
    requireRoom(
      organizationId: string,
      file: { bytes: number; isUpload: boolean },
      limits: StorageLimits,
    ): Promise<void>
    /** By id alone: for signed URLs, whose signature grants the right to read. Includes removed files. */
    find(id: string): Promise<FileRecord | undefined>
    /** Newest first, without removed files. */
    list(organizationId: string, page: { limit: number; after?: string; purpose?: FilePurpose }): Promise<FileRecord[]>
    /** The files of the files API, without removed and expired ones. */
    listOfApi(organizationId: string, page: ApiFilePage): Promise<FileRecord[]>
    /**
     * Removes a file unless unfinished work needs it: then throws Failure `conflict`, which names the work. Undefined: the
     * organization has no such file, or it was removed.
     */
    delete(organizationId: string, id: string, at: number): Promise<FileRecord | undefined>
    /** Idempotent. Undefined: the organization has no such file. */
    remove(organizationId: string, id: string, at: number): Promise<FileRecord | undefined>
    /** Removes expired files, and returns the files whose bytes can be erased: at most `limit`. */
    expire(now: number, limit: number): Promise<FileRecord[]>
    /** Marks these files' bytes as erased. The rows stay, so that an old URL can be distinguished from a wrong one. */
    erased(ids: readonly string[]): Promise<void>
  }
  /** Responses that are kept so that they can be read and continued. */
  responses: {
    add(record: ResponseRecord): Promise<void>
    /** Undefined: the organization has no such response, or it has expired. */
    find(organizationId: string, id: string, now: number): Promise<ResponseRecord | undefined>
    /** False: there is no such response. */
    remove(organizationId: string, id: string): Promise<boolean>
  }
  /** The videos of an organization, added when their job ends. */
  library: {
    list(organizationId: string, filter: LibraryFilter): Promise<{ items: LibraryItem[]; next: string | null }>
    find(organizationId: string, id: string): Promise<LibraryItem | undefined>
    /** Removes the entry and its files. Undefined: the organization has no such entry. */
    remove(organizationId: string, id: string, at: number): Promise<LibraryItem | undefined>
  }
  spend: SpendStore
  workflows: WorkflowStore
  executions: ExecutionStore
  batches: BatchStore
  webhooks: WebhookStore
  /** What finished work has used, summed in the transaction of its ledger row; kept longer than jobs. */
  usage: {
    read(query: UsageQuery): Promise<UsagePage>
  }
}

export interface Store extends StoreMethods {
  /**
   * Adds a listener. It is called once for each commit that has effects, in order, with the effects. Add it before the
   * first job is claimed.
   */
  onCommitted(listener: (effects: CommitEffects) => void): void
  /** What was found and repaired when the store was opened. */
  readonly recovery: { requeued: number; crashed: number; migratedFrom: number | null; bootId: string }
  stats(): StoreStats
  /**
   * Copies the open database to a new file, large results included, and verifies it; writers continue. Returns its
   * bytes.
   */
  backup(to: string, onProgress?: (done: number, total: number) => void): Promise<{ bytes: number }>
  close(): Promise<void>
}

interface StoreStats {
  /** `ready`, or read-only with the reason as a sentence. */
  writable: true | string
  queuedCommands: number
  commits: number
  commands: number
  lateResults: number
  ledgerRows: number
  /** What work that finished since the start has used, by model. */
  used: ReadonlyMap<string, UsageSums>
}
