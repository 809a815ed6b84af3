import { z } from 'zod'
import { Dag } from '../../core/dag/definition.ts'
import { executionStatuses } from '../../core/dag/execution-state.ts'
import { isId } from '../../core/ids.ts'
import {
  anyObject,
  anything,
  array,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableNumber,
  nullableString,
  nullish,
  nullishString,
  number,
  object,
  oneOf,
  optional,
  string,
} from '../../core/schemas/fields.ts'
import type { JobError } from '../../core/store/store.ts'
import type { ExecutionRecord } from '../../core/store/workflows.ts'
import { found } from '../http/request/errors.ts'
import { type Embedded, JsonText } from '../http/request/json-text.ts'
import type { Owners } from '../http/request/owners.ts'
import { ExecutionNodeObject, keptOf, shownNodes } from './execution-nodes.ts'
import { ErrorFacts, UsageObject, usageObject, type Viewer, WaitingFor } from './job-record.ts'
import { viewOf } from './view-of.ts'

const ExecutionErrorObject = namedObject(
  'ExecutionError',
  'Why an execution did not complete: a node failed, or its time was over.',
  {
    code: oneOf('Error code.', ['node_failed', 'timeout']),
    message: string('What happened, as a sentence.'),
    type: oneOf('Class of the error.', ['execution_error', 'timeout_error']),
    node_id: nullishString('Id of the node that failed first.'),
    task: nullishString('Task of that node.'),
    cause: nullish(ErrorFacts, 'Why that node failed; null if its job was cancelled.'),
    failed_nodes: optional(z.array(z.string()), 'Ids of all nodes that failed.'),
    skipped_nodes: optional(z.array(z.string()), 'Ids of the nodes that were not run because of it.'),
  },
)

const ExecutionFacts = z.object({
  id: string('Id of the execution: `exec_…`.'),
  object: z.literal('workflow_execution'),
  workflow_id: nullableString('Id of the workflow; null if it was executed without being stored.'),
  workflow_version: nullableInteger('Version of the workflow; null as `workflow_id` is.'),
  workflow_name: string('Name of the workflow when the execution was created.'),
  organization_id: string('Id of the organization: `org_…`.'),
  status: oneOf('State of the execution.', executionStatuses),
  queue_position: nullableInteger(
    'How many executions of the workflow wait before it; null unless it waits for others of its workflow, and in lists.',
  ),
  waiting_for: nullable(
    WaitingFor,
    'Why it has not begun, if it waits for other executions of its workflow; else null.',
  ),
  input_params: anyObject('The input parameters that it was given.'),
  error: nullable(ExecutionErrorObject, 'Why it did not complete; null if it did, or has not ended.'),
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
  timeout_at: nullableInteger(
    'Unix seconds at which it is ended if it has not ended; null before it begins, and while it only waits.',
  ),
  timeout_remaining: nullableNumber(
    'While it only waits for people, events or times: how many seconds are left of its timeout, which goes on with the next node. Null for others.',
  ),
  expires_at: nullableInteger('Unix seconds after which it is deleted; null if it is kept or has not ended.'),
  duration_ms: nullableInteger('Milliseconds from start to end; null before the end.'),
  progress: object('Numbers of nodes.', {
    total: integer('All nodes.'),
    completed: integer('Nodes that completed.'),
    failed: integer('Nodes that failed.'),
    skipped: integer('Nodes that were not run.'),
    running: integer('Nodes that run.'),
    waiting: integer('Nodes that wait for something that no model does, such as an answer.'),
  }),
  usage: UsageObject,
  budget: nullableNumber('The most that it may cost, in the same unit; null without a limit.'),
  cost: number('Cost so far in the currency unit of the configured prices.'),
  priority: integer('Priority of its jobs, -100 to 100; higher runs earlier.'),
  tags: array('Words by which it can be listed.', z.string()),
  metadata: anything('Your own key-value pairs.'),
  trigger: oneOf('What started it: a request, or a node of another execution.', ['api', 'workflow']),
  token_id: string('Id of the token that started it.'),
  parent_execution_id: nullableString('Id of the execution that this one retries; null for a first one.'),
  parent_node: nullable(
    z.object({ execution_id: string('Id of the execution.'), node_id: string('Id of the node.') }),
    'The node of another execution that runs it; null for one that a request has started.',
  ),
  webhook_url: nullableString('Where its events are sent, as the request said; null if it did not.'),
  traceparent: nullableString(
    'The trace of the request that started it, as its `traceparent` header said; null without a valid one. The jobs of its nodes have the same.',
  ),
})

export const ExecutionSummary = ExecutionFacts.meta({
  id: 'ExecutionSummary',
  description: 'An execution without its nodes and results.',
})
export const ExecutionObject = ExecutionFacts.extend({
  outputs: nullable(
    z.record(
      z.string(),
      z.object({
        result: anything('The result, or the parts of it that `outputs` of the node keeps.'),
        values: anyObject('The kept values by their paths.'),
      }),
    ),
    'Results by node id; null until the execution has completed.',
  ),
  nodes: optional(z.array(ExecutionNodeObject), 'The nodes, unless `?include=none`.'),
  dag: optional(Dag, 'The graph that is executed, with `?include=dag`.'),
}).meta({ id: 'Execution', description: 'An execution of a workflow.' })

/** Returns an execution without its nodes, for lists and events. */
export const executionSummary = (execution: ExecutionRecord): z.input<typeof ExecutionSummary> => {
  const { startedAt, finishedAt, metadata } = execution
  return viewOf(ExecutionSummary, execution, {
    waiting_for: execution.queued ? waitingForOthers(execution) : null,
    trigger: execution.parentNode ? 'workflow' : 'api',
    parent_node: execution.parentNode && {
      execution_id: execution.parentNode.executionId,
      node_id: execution.parentNode.nodeId,
    },
    error: errorOf(execution),
    warnings: execution.warnings.map(({ nodeId, cause }) => ({
      code: 'node_failed' as const,
      node_id: nodeId,
      message: failedNode(nodeId, cause),
    })),
    timeout_remaining: execution.remainingMs === null ? null : execution.remainingMs / 1000,
    duration_ms: startedAt === null || finishedAt === null ? null : finishedAt - startedAt,
    usage: usageObject(execution.usage),
    budget: execution.budget === null ? null : execution.budget / 1e6,
    cost: execution.cost / 1e6,
    workflow_name: execution.definition.name,
    tags: execution.definition.tags,
    metadata: metadata === null ? {} : JSON.parse(metadata),
    webhook_url: execution.webhook?.url ?? null,
  })
}

const waitingForOthers = ({ queuePosition }: ExecutionRecord): z.input<typeof WaitingFor> => {
  const before = queuePosition === null || queuePosition === 0 ? '' : `, and ${queuePosition} more wait before it`
  return {
    reason: 'concurrency',
    detail: `As many executions of its workflow run as its 'concurrency' allows${before}.`,
    eta_seconds: null,
  }
}

const failedNode = (nodeId: string | null, cause: JobError | null) => {
  const why = cause?.message ?? 'its job was cancelled.'
  return nodeId === null ? why : `Node "${nodeId}" failed: ${why}`
}

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
export const findExecution = async (id: string, { caller }: Viewer, { executions }: Owners<'executions'>) =>
  found(isId(id, 'exec_') && (await executions.find(caller.organizationId, id)), 'Execution', id)
