import type { Concurrency } from '../dag/concurrency.ts'
import type { Dag, Parameters } from '../dag/definition.ts'
import type {
  Awaitable,
  ExecutionStatus,
  ItemStatus,
  NodeStatus,
  PlannedItems,
  SkipReason,
} from '../dag/execution-state.ts'
import type { Region } from '../schemas/region.ts'
import type { ExecutionItem, ItemCounts, NodeJob } from './execution-items.ts'
import type { JobLimits } from './limits.ts'
import type {
  IdempotencyKey,
  JobClaim,
  JobError,
  JobRecord,
  LargeResult,
  RequestWebhook,
  RowKey,
  Usage,
  WaitingJob,
} from './store.ts'
import type { NewWait } from './waits.ts'

/** A workflow's definition. Every version is kept as long as the workflow. */
export interface WorkflowDefinition {
  name: string
  description: string | null
  /** Words by which it and its executions can be listed, each once. */
  tags: string[]
  region: Region
  /** Seconds. */
  timeout: number
  onFailure: 'fail_fast' | 'continue'
  /** The most that an execution may cost, in the currency unit; null or absent without a limit. */
  budget?: number | null
  /** Null or absent: any number of executions run at once. That of the newest version applies to all. */
  concurrency?: Concurrency | null
  /** Null: no parameters are declared, so any may be given. */
  parameters: Parameters | null
  dag: Dag
}
export interface NewWorkflow extends WorkflowDefinition {
  id: string
  organizationId: string
  createdAt: number
}
export interface WorkflowRecord extends NewWorkflow {
  /** Starts at 1 and grows by one with every change. */
  version: number
  updatedAt: number
}

/** One version in the list of a workflow. */
export interface WorkflowVersion {
  version: number
  name: string
  createdAt: number
}

export interface WorkflowStore {
  create(workflow: NewWorkflow): Promise<WorkflowRecord>
  /**
   * Adds a version and returns the workflow with it; `conflict` (version_conflict) if `expected` is given and is not the
   * current one. Undefined: no such workflow.
   */
  update(
    organizationId: string,
    id: string,
    change: Partial<WorkflowDefinition>,
    more: { expected: number | undefined; at: number },
  ): Promise<WorkflowRecord | undefined>
  find(organizationId: string, id: string, version?: number): Promise<WorkflowRecord | undefined>
  /** The ids of workflows with exactly this name, at most ten. */
  named(organizationId: string, name: string): Promise<string[]>
  /** The versions before `before`, newest first; empty if there is no such workflow. */
  versions(
    organizationId: string,
    id: string,
    page: { limit: number; before?: number },
  ): Promise<{ versions: WorkflowVersion[]; next: number | null }>
  /**
   * Last changed first, with an empty `dag`. `search`: a part of the name, in any case. A page may have fewer than
   * `limit` entries although there is a next one.
   */
  list(
    organizationId: string,
    page: { limit: number; after?: string; search?: string; tag?: string },
  ): Promise<{ workflows: WorkflowRecord[]; next: string | null }>
  /** Keeps its executions. `conflict` while one of them is unfinished. Undefined: no such workflow. */
  remove(organizationId: string, id: string): Promise<true | undefined>
}

/** The snapshot from which an execution runs: fixed at its creation, whatever happens to the workflow. */
export interface NewExecution {
  id: string
  organizationId: string
  tokenId: string
  workflowId: string | null
  workflowVersion: number | null
  definition: WorkflowDefinition
  /** With the defaults filled in. */
  inputParams: Record<string, unknown>
  priority: number
  /** Milliseconds from the start of its first node. */
  timeoutMs: number
  /** The most that it may cost, in millionths of the currency unit; null or absent without a limit. */
  budget?: number | null
  /** How long it is kept after its end, milliseconds; null: until it is removed. */
  retentionMs: number | null
  /** JSON text or null. */
  metadata: string | null
  parentExecutionId: string | null
  /** Whether executions that its nodes run continue those that failed in the execution that it retries. Default: no. */
  continues?: boolean
  /** The job of the node that runs it, which waits or runs under the claim. The same commit sets that job aside. */
  parentJob?: { id: string; claim?: Pick<JobClaim, 'boot' | 'claims'> }
  /** What this server's own URLs in its inputs begin with: the address that the caller used. */
  origin: string
  /** Where its events are sent besides the endpoints of the organization. */
  webhook?: RequestWebhook | null
  /** The trace that it belongs to (W3C Trace Context), for the jobs of its nodes; null or absent without one. */
  traceparent?: string | null
  createdAt: number
  nodes: NewExecutionNode[]
  idempotency: IdempotencyKey | null
  /** Limits of the organization that apply to new jobs, checked before its first jobs; those of later nodes are not. */
  limits?: JobLimits
}

/** In the order of the definition; the index in this list is the node's number. */
export interface NewExecutionNode {
  nodeId: string
  task: string
  modelId: string
  /** The name by which the definition chooses its model; null or absent if it is `modelId`. */
  requestedModel?: string | null
  successors: number[]
  predecessors: number
  onError: 'fail' | 'continue'
  /** As those of PlannedNode; absent where they have no effect. */
  join?: 'any'
  optional?: number[]
  /** Its result is the pin of its definition: the node is completed from the start. */
  pinned?: true
  /** Its task runs once for each item of a list; absent if it runs once. */
  items?: PlannedItems
  /** It has no condition, and no earlier result is looked up before it is queued. */
  direct: boolean
  maxAttempts: number
  /** Time limit of one attempt, milliseconds. */
  timeoutMs: number | null
  /** The id of its job, created beforehand. */
  jobId: string
  /** The job of another execution whose result it reuses: the node is completed from the start. */
  reuses: string | null
  /** Its items that have completed in the execution that this one retries are completed from the start. */
  keepsItems?: true
}

export interface ExecutionRecord
  extends Omit<
    NewExecution,
    'nodes' | 'idempotency' | 'limits' | 'webhook' | 'traceparent' | 'parentJob' | 'continues' | 'budget'
  > {
  continues: boolean
  budget: number | null
  /** The node of another execution that runs it; null for one that a request has started. */
  parentNode: { executionId: string; nodeId: string } | null
  webhook: RequestWebhook | null
  traceparent: string | null
  status: ExecutionStatus
  /** Whether it waits for other executions of its workflow. */
  queued: boolean
  /** How many of those that wait are before it; null unless it waits, and in lists. */
  queuePosition: number | null
  error: ExecutionError | null
  /** Of a completed execution: its nodes that have failed and whose failure was tolerated. */
  warnings: { nodeId: string; cause: JobError }[]
  updatedAt: number
  startedAt: number | null
  finishedAt: number | null
  /** When it times out; null before its start, and while it only waits: then `remainingMs` are left. */
  timeoutAt: number | null
  remainingMs: number | null
  expiresAt: number | null
  progress: { total: number; completed: number; failed: number; skipped: number; running: number; waiting: number }
  usage: Usage
  cost: number
}

/**
 * The execution timed out, or a node failed: the first one that failed, why, and the nodes that failed or were skipped.
 */
export type ExecutionError =
  | { code: 'timeout' }
  | {
      code: 'node_failed'
      nodeId: string | null
      task: string | null
      cause: JobError | null
      failedNodes: string[]
      skippedNodes: string[]
    }

export interface ExecutionNode {
  nodeId: string
  task: string
  modelId: string
  status: NodeStatus
  /**
   * What its job awaits; null unless it is set aside. Of a list whose items all wait: what those await, and the list is waiting
   * too.
   */
  awaits: Awaitable | null
  /** Null for a node that was not skipped. */
  skipReason: SkipReason | null
  /** The execution that it has run; null for a node that runs none. */
  childExecutionId: string | null
  /** Its own job, or the job whose result it reuses; null before it was ready, and if it is pinned or was skipped. */
  jobId: string | null
  attempts: number
  cached: boolean
  /** Its result is the pin of its definition. */
  pinned: boolean
  /** Millionths of the currency unit; null before the end, 0 for a result that is reused or pinned. */
  cost: number | null
  error: JobError | null
  startedAt: number | null
  finishedAt: number | null
  /** How many items it has, of a node with `for_each`; null before its list is known, and if it has none. */
  items: ItemCounts | null
}

export interface NodeResult {
  status: NodeStatus
  /** JSON text, or a handle if it is large; null unless the node is completed. */
  result: string | LargeResult | null
  error: JobError | null
}

/** What a commit has changed besides what the callers of its commands get as answers. */
export interface CommitEffects {
  /** Jobs of executions to be queued now. */
  released: (WaitingJob & { executionId: string; nodeId: string; direct: boolean })[]
  /** Jobs of executions that were claimed in the commit that ended `before`, for the slot kept for them. */
  claimedSuccessors: { before: string; job: JobRecord }[]
  /** Jobs of nodes with `for_each` whose items have all ended: their results are to be gathered. */
  gathers: NodeJob[]
  /** Jobs of executions that the store has ended itself: running ones must be stopped. */
  withdrawn: WaitingJob[]
  /** Jobs that were set aside while they ran: their runs must be stopped. */
  setAside: WaitingJob[]
  /**
   * Executions that have changed, each once: whether they ended, the time limit of those that have just started, and the
   * models of the nodes that are next.
   */
  executions: (RowKey & { ended: boolean; timeoutAt?: number; next: readonly string[] })[]
  /** Executions that have ended, whose nodes in other executions, which have these jobs, end with them. */
  nestedEnded: (RowKey & { jobId: string })[]
  /** Targets of new webhook deliveries. */
  deliveries: string[]
  /** Organizations that have events of their own. */
  organizations: string[]
  /** Batches that have changed. */
  batches: RowKey[]
  /** What could not be processed and was ended for that, and the stack of the error. The store logs them. */
  givenUp: { id: string; cause: string }[]
}

/** The end of a job that is set aside. */
export type Resolution =
  /** JSON text, or the same in UTF-8. */
  { result: string | Uint8Array } | { error: JobError }

export interface ExecutionStore {
  /**
   * Stores the execution, its nodes, the first jobs and the events in one transaction. The same idempotency key returns
   * the same execution, and so does the same `parentJob`. It waits, or is refused (`conflict`, `queue_full`), if the workflow's `concurrency` says so.
   */
  create(execution: NewExecution): Promise<{ execution: ExecutionRecord; replayed: boolean }>
  find(organizationId: string, id: string): Promise<ExecutionRecord | undefined>
  /** The same with an empty `dag`: cheap, however many nodes there are. */
  summary(organizationId: string, id: string): Promise<ExecutionRecord | undefined>
  nodes(organizationId: string, id: string): Promise<ExecutionNode[]>
  /** The execution that a node of an execution, or one of its items, has run, with an empty `dag`. */
  nested(
    organizationId: string,
    id: string,
    of: { nodeId: string; item?: number | undefined },
  ): Promise<ExecutionRecord | undefined>
  /** The budgets of an execution and of those around it, with what has been spent of each. */
  budgets(organizationId: string, id: string): Promise<{ executionId: string; limit: number; spent: number }[]>
  /** Executions that have ended although the jobs of their nodes still await them. */
  unresolved(): Promise<(RowKey & { jobId: string })[]>
  /** Newest first, with an empty `dag`. */
  list(
    organizationId: string,
    filter: {
      limit: number
      after?: string
      workflowId?: string
      status?: ExecutionStatus
      createdAfter?: number
      metadata?: Record<string, string>
      tag?: string
    },
  ): Promise<{ executions: ExecutionRecord[]; next: string | null }>
  /**
   * Cancels everything of it that is unfinished. Idempotent. Failure `execution_already_finished`; undefined: no such
   * execution.
   */
  cancel(organizationId: string, id: string, at: number): Promise<ExecutionRecord | undefined>
  /** Ends executions whose time limit has passed as `timed_out`. At most `limit`. */
  expire(now: number, limit: number): Promise<ExecutionRecord[]>
  /** When the next execution times out, epoch milliseconds. */
  nextDue(): Promise<number | null>
  /** Removes expired executions, at most `limit`; returns how many. */
  sweep(now: number, limit: number): Promise<number>
  /** Removes an ended execution (`conflict` otherwise) with its jobs and files. Undefined: no such execution. */
  remove(organizationId: string, id: string, at: number): Promise<true | undefined>
  /** Removes jobs of items of an ended execution, at most `limit`; returns how many. */
  removeItems(organizationId: string, id: string, at: number, limit: number): Promise<number>
  /** The status and result of these nodes. */
  results(organizationId: string, id: string, nodeIds: readonly string[]): Promise<Record<string, NodeResult>>
  /** Items of a node in the order of the list, after the position `after`. */
  items(
    organizationId: string,
    id: string,
    page: { nodeId: string; after: number; limit: number; status?: ItemStatus },
  ): Promise<ExecutionItem[]>
  /**
   * The results of items of a node in the order of the list, from a position on, at least one unless the list ends there;
   * null for those that have none.
   */
  itemResults(
    organizationId: string,
    id: string,
    from: { nodeId: string; item: number },
  ): Promise<NodeResult['result'][]>
  /** The jobs of nodes whose items have all ended, and which have not ended themselves. */
  gathers(): Promise<NodeJob[]>
  /** The inputs of completed nodes, JSON text by node; leaves out those longer than `maxLength`. */
  inputs(organizationId: string, id: string, maxLength: number): Promise<Record<string, string>>
  /** The job that has produced the result of the same work, if its result and files are still kept. */
  cached(organizationId: string, key: string): Promise<string | undefined>
  /**
   * Makes a node reuse the result of another job instead of running. The node's own job is removed; if it runs, it is
   * stopped. False: the node is no longer pending; with a claim: it no longer runs under that claim.
   */
  reuse(
    organizationId: string,
    jobId: string,
    from: { jobId: string; at: number; claim?: Pick<JobClaim, 'boot' | 'claims'> },
  ): Promise<boolean>
  /**
   * Sets the job of a node aside for its items, `count` of them, and gives the first of them their jobs. Otherwise like
   * `reuse`.
   */
  expand(
    organizationId: string,
    jobId: string,
    how: { at: number; count: number; claim?: Pick<JobClaim, 'boot' | 'claims'> },
  ): Promise<boolean>
  /** Skips the node of a job, whose condition is false. Otherwise like `reuse`. */
  skip(
    organizationId: string,
    jobId: string,
    how: { at: number; claim?: Pick<JobClaim, 'boot' | 'claims'> },
  ): Promise<boolean>
  /**
   * Takes the job of a node out of the queue until `resolve` ends it, or its execution ends: it stays pending, holds no
   * slot, and no read of the queue returns it. `inputs`: JSON text of its inputs; `wait`: for `store.waits`, which needs them. The time limit of the execution begins, if
   * this is its first node, and stops while nothing of it is queued or runs. False: the job is no longer pending, or set aside already; with a claim: it no longer runs
   * under that claim.
   */
  setAside(
    organizationId: string,
    jobId: string,
    how: { awaits: Awaitable; at: number; inputs?: string; claim?: Pick<JobClaim, 'boot' | 'claims'>; wait?: NewWait },
  ): Promise<boolean>
  /**
   * Ends a job that is set aside and moves its execution on, like the end of any job; it has used nothing. False: it is no
   * longer set aside for this, and nothing changes.
   */
  resolve(organizationId: string, jobId: string, how: { awaits: Awaitable; at: number } & Resolution): Promise<boolean>
}
