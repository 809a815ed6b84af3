import type { ExecutionStatus, NodeStatus } from '../dag/advance.ts'
import type { Dag, Parameters } from '../dag/definition.ts'
import type {
  IdempotencyKey,
  JobClaim,
  JobError,
  JobEventType,
  JobRecord,
  LargeResult,
  Usage,
  WaitingJob,
} from './store.ts'

/** A workflow as it is written down. Every version is kept as long as the workflow. */
export interface WorkflowDefinition {
  name: string
  description: string | null
  region: Region
  /** Seconds. */
  timeout: number
  onFailure: 'fail_fast' | 'continue'
  /** Null: nothing is declared, so anything may be given. */
  parameters: Parameters | null
  dag: Dag
}
export const regions = ['Global', 'US', 'EU'] as const
export type Region = (typeof regions)[number]

export interface NewWorkflow extends WorkflowDefinition {
  id: string
  organizationId: string
  createdAt: number
}
export interface WorkflowRecord extends NewWorkflow {
  /** 1 at first, one more with every change. */
  version: number
  updatedAt: number
}

export interface WorkflowStore {
  create(workflow: NewWorkflow): Promise<WorkflowRecord>
  /** Another version; `conflict` (version_conflict) when `expected` is given and is not the present one. Undefined: no such workflow. */
  update(
    organizationId: string,
    id: string,
    change: Partial<WorkflowDefinition>,
    more: { expected: number | undefined; at: number },
  ): Promise<WorkflowRecord | undefined>
  find(organizationId: string, id: string, version?: number): Promise<WorkflowRecord | undefined>
  /** Last changed first, without `dag` (an empty one). `search`: words that the name holds, in any case. */
  list(
    organizationId: string,
    page: { limit: number; after?: string; search?: string },
  ): Promise<{ workflows: WorkflowRecord[]; next: string | null }>
  /** Its executions stay. `conflict` while one of them is not over. Undefined: no such workflow. */
  remove(organizationId: string, id: string): Promise<true | undefined>
}

/** What an execution is made of: frozen when it is created, whatever becomes of the workflow. */
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
  /** Milliseconds from when its first node begins. */
  timeoutMs: number
  /** How long it is kept after its end; null: until it is removed. */
  retentionMs: number | null
  /** JSON text or null. */
  metadata: string | null
  parentExecutionId: string | null
  /** What our own addresses in its inputs begin with: where its caller has reached us. */
  origin: string
  createdAt: number
  nodes: NewExecutionNode[]
  idempotency: IdempotencyKey | null
}

/** In the order of the definition; its place in this list is its number. */
export interface NewExecutionNode {
  nodeId: string
  task: string
  modelId: string
  successors: number[]
  predecessors: number
  onError: 'fail' | 'continue'
  /** Its result is its own: there is none to be looked for before it is queued. */
  direct: boolean
  maxAttempts: number
  /** Of one attempt, milliseconds. */
  timeoutMs: number | null
  /** The id that its job will have, minted beforehand. */
  jobId: string
  /** The job of another execution whose result it takes over: it is completed from the start. */
  reuses: string | null
}

export interface ExecutionRecord extends Omit<NewExecution, 'nodes' | 'idempotency'> {
  status: ExecutionStatus
  error: ExecutionError | null
  /** Of one that has completed: the nodes that have failed all the same, because that was borne. */
  warnings: { nodeId: string; cause: JobError }[]
  updatedAt: number
  startedAt: number | null
  finishedAt: number | null
  timeoutAt: number | null
  expiresAt: number | null
  progress: { total: number; completed: number; failed: number; skipped: number; running: number }
  usage: Usage
  cost: number
}

/** Its time was over, or a node has failed: which was the first, how, and what became of the others. */
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
  /** Its own job, or the one whose result it took over; null before it was ready. */
  jobId: string | null
  attempts: number
  cached: boolean
  error: JobError | null
  startedAt: number | null
  finishedAt: number | null
}

export const executionEventTypes = [
  'workflow_execution.created',
  'workflow_execution.started',
  'workflow_execution.completed',
  'workflow_execution.failed',
  'workflow_execution.cancelled',
  'workflow_execution.timed_out',
  'workflow_execution.node.skipped',
  'workflow_execution.node.cached',
] as const
export type ExecutionEventType = (typeof executionEventTypes)[number]

/** What has happened to an execution, or to the job of one of its nodes. */
export interface ExecutionEvent {
  sequence: number
  type: ExecutionEventType | JobEventType
  executionId: string
  nodeId: string | null
  jobId: string | null
  attempt: number
  at: number
}

/** The same of everything that happens in an organization: also to jobs that belong to no execution. */
export interface OrganizationEvent extends Omit<ExecutionEvent, 'executionId'> {
  executionId: string | null
}

export interface NodeResult {
  status: NodeStatus
  /** JSON text, or a handle of it when it is large; null unless it is completed. */
  result: string | LargeResult | null
  error: JobError | null
}

/** What a commit means for others than those who asked for it. */
export interface CommitEffects {
  /** Jobs of executions that are to be queued now. */
  released: (WaitingJob & { executionId: string; nodeId: string; direct: boolean })[]
  /** Jobs of executions that were stored as running, with the end of the one before, for the slot that was kept for them. */
  handedOn: { before: string; job: JobRecord }[]
  /** Jobs that were ended with their execution: those that run are to be told. */
  withdrawn: WaitingJob[]
  /** Executions of which something has changed, whether that was their end, and how long those have that have begun now. */
  executions: { organizationId: string; id: string; ended: boolean; timeoutAt?: number }[]
}

export interface ExecutionStore {
  /** The execution, its nodes, the first jobs and the events, in one transaction. The same idempotency key finds the same one. */
  create(execution: NewExecution): Promise<{ execution: ExecutionRecord; replayed: boolean }>
  find(organizationId: string, id: string): Promise<ExecutionRecord | undefined>
  /** The same without the definition's dag (an empty one): cheap, however many nodes there are. */
  summary(organizationId: string, id: string): Promise<ExecutionRecord | undefined>
  nodes(organizationId: string, id: string): Promise<ExecutionNode[]>
  /** Newest first, without the definition's dag (an empty one). */
  list(
    organizationId: string,
    filter: {
      limit: number
      after?: string
      workflowId?: string
      status?: ExecutionStatus
      createdAfter?: number
      metadata?: Record<string, string>
    },
  ): Promise<{ executions: ExecutionRecord[]; next: string | null }>
  /** Everything of it that is not over is cancelled. Cancelled already: as it is. `execution_already_finished`; undefined: no such one. */
  cancel(organizationId: string, id: string, at: number): Promise<ExecutionRecord | undefined>
  /** Ends those whose time is over as `timed_out`. At most `limit`. */
  expire(now: number, limit: number): Promise<ExecutionRecord[]>
  /** When the next one's time is over, epoch milliseconds. */
  nextDue(): Promise<number | null>
  /** Forgets those whose time is over, at most `limit`; how many. */
  sweep(now: number, limit: number): Promise<number>
  /** Ended ones only (`conflict` otherwise), with their jobs and files. Undefined: no such one. */
  remove(organizationId: string, id: string, at: number): Promise<true | undefined>
  /** How these nodes have ended, and what they gave. */
  results(organizationId: string, id: string, nodeIds: readonly string[]): Promise<Record<string, NodeResult>>
  /** What nodes that have completed were given, JSON text by node; those that are longer are not among them. */
  inputs(organizationId: string, id: string, longest: number): Promise<Record<string, string>>
  /** The job that has had the result of the same work before, and still has it with all its files. */
  cached(organizationId: string, key: string): Promise<string | undefined>
  /**
   * A node takes over the result of another job instead of running. Its own job is gone then: one that runs is told.
   * False: the node is not pending any more; with a claim: it does not run under that one any more.
   */
  reuse(
    organizationId: string,
    jobId: string,
    from: { jobId: string; at: number; claim?: Pick<JobClaim, 'boot' | 'claims'> },
  ): Promise<boolean>
}
