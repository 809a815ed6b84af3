import { batchEventTypes } from './batch-records.ts'
import { type JobEvent, type JobEventType, jobEventTypes } from './job-records.ts'

/** The types of events of executions and of their nodes that have no job. */
export const executionEventTypes = [
  'workflow_execution.created',
  'workflow_execution.started',
  'workflow_execution.completed',
  'workflow_execution.failed',
  'workflow_execution.cancelled',
  'workflow_execution.timed_out',
  'workflow_execution.node.skipped',
  'workflow_execution.node.cached',
  'workflow_execution.node.pinned',
  'workflow_execution.node.reminder',
] as const
export type ExecutionEventType = (typeof executionEventTypes)[number]

/** An event of an execution, or of the job of one of its nodes. */
export interface ExecutionEvent {
  sequence: number
  type: ExecutionEventType | JobEventType
  executionId: string
  nodeId: string | null
  /** The item of the node that it is about; null for the node itself. */
  item: number | null
  jobId: string | null
  attempt: number
  at: number
  /** As that of a JobEvent; of a reminder the item, if it is of one. */
  data: string | null
}

/** The types of events that belong to an organization, and to none of its jobs and executions. */
export const organizationEventTypes = [
  'quota.warning',
  'quota.exceeded',
  'token.created',
  'token.revoked',
  ...batchEventTypes,
] as const
export type OrganizationEventType = (typeof organizationEventTypes)[number]

/** Any event of an organization: of a job, of an execution, or of the organization itself. */
export interface OrganizationEvent extends Omit<ExecutionEvent, 'executionId' | 'type'> {
  type: ExecutionEvent['type'] | OrganizationEventType
  executionId: string | null
  /** JSON text of an object that describes an event of the organization itself; of others as in a JobEvent. */
  data: string | null
}

/** Event types of nodes, by the event types of their jobs. */
const nodeTypes: Partial<Record<string, string>> = {
  'job.started': 'workflow_execution.node.started',
  'job.retrying': 'workflow_execution.node.retrying',
  'job.waiting': 'workflow_execution.node.waiting',
  'job.completed': 'workflow_execution.node.completed',
  'job.failed': 'workflow_execution.node.failed',
  'job.cancelled': 'workflow_execution.node.cancelled',
}

/** The types of all stored events as the API names them. */
export const publicEventTypes: readonly string[] = [
  ...jobEventTypes,
  ...executionEventTypes,
  ...(Object.values(nodeTypes) as string[]),
  ...organizationEventTypes,
]

/** Returns the type of the event of a node, by the type of the event of its job; undefined if nodes have none. */
export const nodeTypeOf = (type: string): string | undefined => nodeTypes[type]

/** Returns the types under which the API shows a stored event: an event of a node's job is also one of the node. */
export function publicTypesOf(type: string, isNode: boolean): readonly string[] {
  const node = isNode ? nodeTypes[type] : undefined
  return node === undefined ? [type] : [type, node]
}

/** Whether a pattern matches a type: `*` every type, `job.*` those that begin with `job.`, any other text itself. */
export const coversType = (pattern: string, type: string): boolean =>
  pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : pattern === type

/** What has happened to jobs, kept for 24 hours; each event is written in the transaction of its change. */
export interface EventStore {
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
