import { z } from 'zod'
import { executionStatuses } from '../../core/dag/advance.ts'
import { Dag } from '../../core/dag/definition.ts'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import type { JobError } from '../../core/store/store.ts'
import type { ExecutionRecord } from '../../core/store/workflows.ts'
import type { Call } from '../call.ts'
import type { Embedded } from '../embedded.ts'
import type { Owners } from '../owners.ts'
import { JsonText } from '../route.ts'
import { ExecutionNodeObject, keptOf, shownNodes } from './execution-nodes.ts'
import { seconds } from './job-record.ts'

const ExecutionErrorObject = z
  .object({
    code: z.enum(['node_failed', 'timeout']),
    message: z.string(),
    type: z.enum(['execution_error', 'timeout_error']),
    node_id: z.string().nullish().describe('The first that has failed.'),
    task: z.string().nullish(),
    cause: z.object({ code: z.string(), message: z.string(), type: z.string() }).nullish(),
    failed_nodes: z.array(z.string()).optional(),
    skipped_nodes: z.array(z.string()).optional(),
  })
  .meta({ id: 'ExecutionError', description: 'Why it did not complete: a node has failed, or its time was over.' })

const ExecutionFacts = z.object({
  id: z.string(),
  object: z.literal('workflow_execution'),
  workflow_id: z.string().nullable(),
  workflow_version: z.int().nullable(),
  organization_id: z.string(),
  status: z.enum(executionStatuses),
  input_params: z.record(z.string(), z.unknown()),
  error: ExecutionErrorObject.nullable(),
  warnings: z
    .array(z.object({ code: z.literal('node_failed'), node_id: z.string(), message: z.string() }))
    .describe('Of one that has completed: nodes that have failed where that was borne.'),
  created_at: z.int(),
  updated_at: z.int(),
  started_at: z.int().nullable(),
  finished_at: z.int().nullable(),
  timeout_at: z.int().nullable(),
  expires_at: z.int().nullable(),
  duration_ms: z.int().nullable(),
  progress: z.object({
    total: z.int(),
    completed: z.int(),
    failed: z.int(),
    skipped: z.int(),
    running: z.int(),
  }),
  usage: z.object({ input_tokens: z.int(), output_tokens: z.int() }),
  cost: z.number(),
  priority: z.int(),
  metadata: z.unknown(),
  trigger: z.literal('api').describe('What began it: a call of this API.'),
  token_id: z.string(),
  parent_execution_id: z.string().nullable(),
})

export const ExecutionSummary = ExecutionFacts.meta({ id: 'ExecutionSummary' })
export const ExecutionObject = ExecutionFacts.extend({
  outputs: z
    .record(z.string(), z.object({ result: z.unknown(), values: z.record(z.string(), z.unknown()) }))
    .nullable()
    .describe('By node, what it keeps of its result; null until the execution has completed.'),
  nodes: z.array(ExecutionNodeObject).optional(),
  dag: Dag.optional().describe('What is executed, with `?include=dag`.'),
}).meta({ id: 'Execution' })

/** An execution without its nodes, as it stands in lists and events. */
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
  created_at: seconds(execution.createdAt)!,
  updated_at: seconds(execution.updatedAt)!,
  started_at: seconds(execution.startedAt),
  finished_at: seconds(execution.finishedAt),
  timeout_at: seconds(execution.timeoutAt),
  expires_at: seconds(execution.expiresAt),
  duration_ms:
    execution.startedAt === null || execution.finishedAt === null ? null : execution.finishedAt - execution.startedAt,
  progress: execution.progress,
  usage: { input_tokens: execution.usage.inputTokens, output_tokens: execution.usage.outputTokens },
  cost: execution.cost / 1e6,
  priority: execution.priority,
  metadata: execution.metadata === null ? {} : JSON.parse(execution.metadata),
  trigger: 'api',
  token_id: execution.tokenId,
  parent_execution_id: execution.parentExecutionId,
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
 * The execution with what its nodes keep, and with the nodes themselves where they are wanted. Large results are put
 * among the embedded; without those, null stands in their places.
 */
export async function shownExecution(
  execution: ExecutionRecord,
  call: Call,
  owners: Pick<Owners, 'cpu' | 'executions' | 'files' | 'jobs'>,
  { withNodes, withDag = false, embedded }: { withNodes: boolean; withDag?: boolean; embedded?: Embedded[] },
): Promise<z.input<typeof ExecutionObject>> {
  const { organizationId, id, definition, status } = execution
  const done = status === 'completed'
  const nodes = withNodes || done ? await owners.executions.nodes(organizationId, id) : []
  const shown = withNodes ? await shownNodes(execution, nodes, call, owners, embedded) : undefined
  const kept = shown?.kept ?? (await keptOf(execution, nodes, call, owners, embedded))
  return {
    ...executionSummary(execution),
    outputs: done ? Object.fromEntries([...kept].map(([nodeId, { output }]) => [nodeId, output])) : null,
    ...(withDag ? { dag: definition.dag } : {}),
    ...(shown ? { nodes: shown.nodes } : {}),
  }
}

/** The same as an answer, with large results whole. */
export async function executionAnswer(
  execution: ExecutionRecord,
  call: Call,
  owners: Pick<Owners, 'cpu' | 'executions' | 'files' | 'jobs'>,
  how: { withNodes: boolean; withDag?: boolean },
): Promise<JsonText> {
  const embedded: Embedded[] = []
  const shown = await shownExecution(execution, call, owners, { ...how, embedded })
  return new JsonText(JSON.stringify({ execution: shown }), undefined, embedded)
}

const isExecutionId = (id: string): boolean => id.startsWith('exec_') && isId(id)

/** The execution of the caller's organization. Throws Failure `not_found`. */
export async function findExecution(
  id: string,
  call: Call,
  { executions }: Pick<Owners, 'executions'>,
): Promise<ExecutionRecord> {
  const found = isExecutionId(id) ? await executions.find(call.caller.organizationId, id) : undefined
  if (found) return found
  throw new Failure('not_found', `Execution ${id.slice(0, 64)} was not found.`)
}
