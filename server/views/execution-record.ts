import { z } from 'zod'
import { executionStatuses } from '../../core/dag/advance.ts'
import { Dag } from '../../core/dag/definition.ts'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import {
  array,
  integer,
  namedObject,
  nullableInteger,
  nullableString,
  number,
  object,
  string,
} from '../../core/schemas/fields.ts'
import type { JobError } from '../../core/store/store.ts'
import type { ExecutionRecord } from '../../core/store/workflows.ts'
import { type Embedded, JsonText } from '../http/request/json-text.ts'
import type { Owners } from '../http/request/owners.ts'
import { ExecutionNodeObject, keptOf, shownNodes } from './execution-nodes.ts'
import { ErrorFacts, seconds, UsageObject, usageObject, type Viewer } from './job-record.ts'

const ExecutionErrorObject = namedObject(
  'ExecutionError',
  'Why an execution did not complete: a node failed, or its time was over.',
  {
    code: z.enum(['node_failed', 'timeout']).describe('Error code.'),
    message: string('What happened, as a sentence.'),
    type: z.enum(['execution_error', 'timeout_error']).describe('Class of the error.'),
    node_id: z.string().nullish().describe('Id of the node that failed first.'),
    task: z.string().nullish().describe('Task of that node.'),
    cause: ErrorFacts.nullish().describe('Why that node failed; null if its job was cancelled.'),
    failed_nodes: z.array(z.string()).optional().describe('Ids of all nodes that failed.'),
    skipped_nodes: z.array(z.string()).optional().describe('Ids of the nodes that were not run because of it.'),
  },
)

const ExecutionFacts = z.object({
  id: string('Id of the execution: `exec_…`.'),
  object: z.literal('workflow_execution'),
  workflow_id: nullableString('Id of the workflow; null if it was executed without being stored.'),
  workflow_version: nullableInteger('Version of the workflow; null as `workflow_id` is.'),
  organization_id: string('Id of the organization: `org_…`.'),
  status: z.enum(executionStatuses).describe('State of the execution.'),
  input_params: z.record(z.string(), z.unknown()).describe('The input parameters that it was given.'),
  error: ExecutionErrorObject.nullable().describe('Why it did not complete; null if it did, or has not ended.'),
  warnings: array(
    'Nodes with `on_error: "continue"` that failed in an execution that completed.',
    z.object({
      code: z.literal('node_failed'),
      node_id: string('Id of the node.'),
      message: string('Why it failed.'),
    }),
  ),
  created_at: integer('Unix seconds.'),
  updated_at: integer('Unix seconds of the last change.'),
  started_at: nullableInteger('Unix seconds at which the first node began; null before.'),
  finished_at: nullableInteger('Unix seconds; null before.'),
  timeout_at: nullableInteger('Unix seconds at which it is ended if it has not ended; null before it begins.'),
  expires_at: nullableInteger('Unix seconds after which it is deleted; null if it is kept or has not ended.'),
  duration_ms: nullableInteger('Milliseconds from start to end; null before the end.'),
  progress: object('Numbers of nodes.', {
    total: integer('All nodes.'),
    completed: integer('Nodes that completed.'),
    failed: integer('Nodes that failed.'),
    skipped: integer('Nodes that were not run.'),
    running: integer('Nodes that run.'),
  }),
  usage: UsageObject,
  cost: number('Cost so far in the currency unit of the configured prices.'),
  priority: integer('Priority of its jobs, -100 to 100; higher runs earlier.'),
  metadata: z.unknown().describe('Your own key-value pairs.'),
  trigger: z.literal('api').describe('What started it: always a call of the API.'),
  token_id: string('Id of the token that started it.'),
  parent_execution_id: nullableString('Id of the execution that this one retries; null for a first one.'),
  webhook_url: nullableString('Where its events are sent, as the request said; null if it did not.'),
})

export const ExecutionSummary = ExecutionFacts.meta({
  id: 'ExecutionSummary',
  description: 'An execution without its nodes and results.',
})
export const ExecutionObject = ExecutionFacts.extend({
  outputs: z
    .record(
      z.string(),
      z.object({
        result: z.unknown().describe('The result, or the parts of it that `outputs` of the node keeps.'),
        values: z.record(z.string(), z.unknown()).describe('The kept values by their paths.'),
      }),
    )
    .nullable()
    .describe('Results by node id; null until the execution has completed.'),
  nodes: z.array(ExecutionNodeObject).optional().describe('The nodes, unless `?include=none`.'),
  dag: Dag.optional().describe('The graph that is executed, with `?include=dag`.'),
}).meta({ id: 'Execution', description: 'An execution of a workflow.' })

/** Returns an execution without its nodes, for lists and events. */
export const executionSummary = (execution: ExecutionRecord): z.input<typeof ExecutionSummary> => ({
  id: execution.id,
  object: 'workflow_execution',
  workflow_id: execution.workflowId,
  workflow_version: execution.workflowVersion,
  organization_id: execution.organizationId,
  status: execution.status,
  input_params: execution.inputParams,
  error: errorOf(execution),
  warnings: execution.warnings.map(({ nodeId, cause }) => ({
    code: 'node_failed',
    node_id: nodeId,
    message: failedNode(nodeId, cause),
  })),
  created_at: seconds(execution.createdAt),
  updated_at: seconds(execution.updatedAt),
  started_at: seconds(execution.startedAt),
  finished_at: seconds(execution.finishedAt),
  timeout_at: seconds(execution.timeoutAt),
  expires_at: seconds(execution.expiresAt),
  duration_ms:
    execution.startedAt === null || execution.finishedAt === null ? null : execution.finishedAt - execution.startedAt,
  progress: execution.progress,
  usage: usageObject(execution.usage),
  cost: execution.cost / 1e6,
  priority: execution.priority,
  metadata: execution.metadata === null ? {} : JSON.parse(execution.metadata),
  trigger: 'api',
  token_id: execution.tokenId,
  parent_execution_id: execution.parentExecutionId,
  webhook_url: execution.webhook?.url ?? null,
})

const failedNode = (nodeId: string | null, cause: JobError | null): string =>
  `Node "${nodeId}" failed: ${cause?.message ?? 'its job was cancelled.'}`

function errorOf({ error, timeoutMs }: ExecutionRecord): z.input<typeof ExecutionErrorObject> | null {
  if (error === null) return null
  if (error.code === 'timeout')
    return {
      code: 'timeout',
      message: `Execution exceeded its timeout of ${timeoutMs / 1000} s.`,
      type: 'timeout_error',
    }
  const { nodeId, task, cause, failedNodes, skippedNodes } = error
  return {
    code: 'node_failed',
    message: failedNode(nodeId, cause),
    type: 'execution_error',
    node_id: nodeId,
    task,
    cause: cause && { code: cause.code, message: cause.message, type: cause.type },
    failed_nodes: failedNodes,
    skipped_nodes: skippedNodes,
  }
}

/**
 * Returns the execution with the kept results of its nodes, and the nodes themselves if `withNodes` is true. Large
 * results are added to `embedded`; without it they are null.
 */
export async function shownExecution(
  execution: ExecutionRecord,
  viewer: Viewer,
  owners: Owners<'cpu' | 'executions' | 'files' | 'jobs'>,
  { withNodes, withDag = false, embedded }: { withNodes: boolean; withDag?: boolean; embedded?: Embedded[] },
): Promise<z.input<typeof ExecutionObject>> {
  const { organizationId, id, definition, status } = execution
  const done = status === 'completed'
  const nodes = withNodes || done ? await owners.executions.nodes(organizationId, id) : []
  const shown = withNodes ? await shownNodes(execution, nodes, viewer, owners, embedded) : undefined
  const kept = shown?.kept ?? (await keptOf(execution, nodes, viewer, owners, embedded))
  return {
    ...executionSummary(execution),
    outputs: done ? Object.fromEntries([...kept].map(([nodeId, { output }]) => [nodeId, output])) : null,
    ...(withDag ? { dag: definition.dag } : {}),
    ...(shown ? { nodes: shown.nodes } : {}),
  }
}

/** Returns the execution as an answer that includes large results. */
export async function executionAnswer(
  execution: ExecutionRecord,
  viewer: Viewer,
  owners: Owners<'cpu' | 'executions' | 'files' | 'jobs'>,
  options: { withNodes: boolean; withDag?: boolean },
): Promise<JsonText> {
  const embedded: Embedded[] = []
  const shown = await shownExecution(execution, viewer, owners, { ...options, embedded })
  return new JsonText(JSON.stringify({ execution: shown }), undefined, embedded)
}

/** Finds an execution of the caller's organization. Throws Failure `not_found`. */
export async function findExecution(
  id: string,
  viewer: Viewer,
  { executions }: Owners<'executions'>,
): Promise<ExecutionRecord> {
  const found = isId(id, 'exec_') ? await executions.find(viewer.caller.organizationId, id) : undefined
  if (found) return found
  throw new Failure('not_found', `Execution ${id.slice(0, 64)} was not found.`)
}
