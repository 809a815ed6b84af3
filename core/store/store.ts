import type { OrganizationStore, SessionStore, TokenStore, UserStore } from './account-records.ts'
import type { AuditStore } from './audit-records.ts'
import type { BatchStore } from './batch-records.ts'
import type { ConversationLinkStore } from './conversation-link-records.ts'
import type { ConversationStore } from './conversation-records.ts'
import type { EventStore } from './event-types.ts'
import type { FileStore, LibraryStore } from './file-records.ts'
import type { IdempotencyStore, JobStore } from './job-records.ts'
import type { ResponseStore } from './response-records.ts'
import type { SpendStore } from './spend-records.ts'
import type { UsageStore, UsageSums } from './usage-records.ts'
import type { WaitStore } from './waits.ts'
import type { WebhookStore } from './webhooks.ts'
import type { CommitEffects, ExecutionStore, WorkflowStore } from './workflows.ts'

// The record types of the store, by subject.
export * from './account-records.ts'
export * from './audit-records.ts'
export * from './batch-records.ts'
export { callRecord } from './call-record.ts'
export * from './conversation-link-records.ts'
export * from './conversation-records.ts'
export * from './event-types.ts'
export * from './file-records.ts'
export * from './job-filter.ts'
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
  organizations: OrganizationStore
  users: UserStore
  audit: AuditStore
  tokens: TokenStore
  sessions: SessionStore
  jobs: JobStore
  events: EventStore
  idempotency: IdempotencyStore
  files: FileStore
  responses: ResponseStore
  conversations: ConversationStore
  conversationLinks: ConversationLinkStore
  library: LibraryStore
  spend: SpendStore
  workflows: WorkflowStore
  executions: ExecutionStore
  waits: WaitStore
  batches: BatchStore
  webhooks: WebhookStore
  usage: UsageStore
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
  /**
   * Gives the data directory to another server and resolves when that may open it. Jobs that run here are put back into
   * the queue, uncharged. Afterwards reads still come from the database, and `send` gets each command for the other
   * server; its answer, or the Failure with which it rejects, is that of the command.
   */
  handOver(send: SendCommand): Promise<void>
  /**
   * Runs a command that another server got from `handOver` of an earlier one; it goes on to the next server after a `handOver`
   * here. Rejects with Failure `shutting_down` once the store is closed: it may be sent again, to the next store.
   */
  perform: SendCommand
  close(): Promise<void>
}

/** Sends a command of a store to the store of another server. Both are plain data. */
export type SendCommand = (name: string, given: readonly unknown[]) => Promise<unknown>

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
