import type { Awaitable } from '../dag/execution-state.ts'

/** What ends a node that waits by itself or from outside, and not by other work of its execution. */
export type AwaitedOutside = Extract<Awaitable, 'approval' | 'event' | 'time'>

/** The begin of a wait. */
export interface NewWait {
  /** SHA-256 of the token with which whoever has it may end the wait. */
  digest: Uint8Array
  /** When it ends by itself, and when its reminder is due, epoch milliseconds; null: never. */
  dueAt: number | null
  remindAt: number | null
}

/** A node that waits, or an item of one. */
export interface Wait extends NewWait {
  organizationId: string
  jobId: string
  executionId: string
  nodeId: string
  /** The item of the node whose job it is; null for a node without `for_each`. */
  item: number | null
  workflowId: string | null
  workflowName: string
  awaits: AwaitedOutside
  /** JSON text: the stored inputs of its task. */
  request: string
  /** What this server's own URLs began with for the caller of the execution. */
  origin: string
  createdAt: number
}

/** Nodes and items that wait for a person, an event or a time, until they end; `executions.setAside` adds them. */
export interface WaitStore {
  find(organizationId: string, jobId: string): Promise<Wait | undefined>
  /** The wait with this digest, of any organization. */
  withDigest(digest: Uint8Array): Promise<Wait | undefined>
  /**
   * Newest first. `after`: `next` of the page before. A page may hold fewer than `limit` although there are more, because a
   * bounded number is searched.
   */
  list(
    organizationId: string,
    filter: { awaits: AwaitedOutside; limit: number; after?: string; executionId?: string; workflowId?: string },
  ): Promise<{ waits: Wait[]; next: string | null }>
  /** Those that end by themselves now, at most `limit`, the earliest first. */
  due(now: number, limit: number): Promise<Wait[]>
  /** When the next one ends or is reminded of, epoch milliseconds; null: never. */
  nextDue(): Promise<number | null>
  /** Adds the events of due reminders, each once, at most `limit`; returns how many. */
  remind(now: number, limit: number): Promise<number>
}
