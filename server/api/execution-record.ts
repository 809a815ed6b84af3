import { z } from 'zod'
import { executionStatuses, nodeStatuses } from '../../core/dag/advance.ts'
import { Dag } from '../../core/dag/definition.ts'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import type { Standing } from '../../core/jobs/jobs.ts'
import type { JobError } from '../../core/store/store.ts'
import type { ExecutionNode, ExecutionRecord } from '../../core/store/workflows.ts'
import { Task } from '../../core/tasks/tasks.ts'
import type { Call } from '../call.ts'
import type { Embedded } from '../embedded.ts'
import { originOf } from '../origin.ts'
import { JsonText } from '../route.ts'
import { type ShownKept, shownKept } from './execution-results.ts'
import { seconds } from './job-record.ts'

const ErrorFacts = z.object({
  code: z.string(),
  message: z.string(),
  type: z.string(),
  retryable: z.boolean(),
  attempt: z.int(),
})

export const ExecutionNodeObject = z
  .object({
    node_id: z.string(),
    task: Task,
    model_id: z.string(),
    status: z.enum(nodeStatuses),
    attempts: z.int(),
    cached: z.boolean().describe('Whether its result is that of the same work before.'),
    job_id: z.string().nullable(),
    started_at: z.int().nullable(),
    finished_at: z.int().nullable(),
    duration_ms: z.int().nullable(),
    progress: z.number().nullable(),
    queue_position: z.int().nullable(),
    waiting_for: z.object({ reason: z.string(), detail: z.string(), eta_seconds: z.int().nullable() }).nullable(),
    resolved_inputs: z
      .unknown()
      .describe('What the inputs come to, where one node is asked for; null where that cannot be said.'),
    result: z.unknown(),
    error: ErrorFacts.nullable(),
    logs_url: z.string().nullable(),
  })
  .meta({ id: 'ExecutionNode' })

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
  `Node '${nodeId}' failed: ${cause?.message ?? 'its job was cancelled.'}`

function errorOf({ error, timeoutMs }: ExecutionRecord): z.input<typeof ExecutionErrorObject> | null {
  if (error === null) return null
  if (error.code === 'timeout')
    return {
      code: 'timeout',
      message: `The execution exceeded its timeout of ${timeoutMs / 1000} s.`,
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

/** A node; its inputs and its result only where they are asked for one by one. */
export function shownNode(node: ExecutionNode, call: Call, standing?: Standing): z.input<typeof ExecutionNodeObject> {
  return {
    node_id: node.nodeId,
    task: node.task as z.input<typeof Task>,
    model_id: node.modelId,
    status: node.status,
    attempts: node.attempts,
    cached: node.cached,
    job_id: node.jobId,
    started_at: seconds(node.startedAt),
    finished_at: seconds(node.finishedAt),
    duration_ms: node.startedAt === null || node.finishedAt === null ? null : node.finishedAt - node.startedAt,
    progress: node.status === 'completed' ? 1 : (standing?.progress ?? null),
    queue_position: standing?.queuePosition ?? null,
    waiting_for: standing?.waitingFor
      ? {
          reason: standing.waitingFor.reason,
          detail: standing.waitingFor.detail,
          eta_seconds: standing.waitingFor.etaMs === null ? null : Math.ceil(standing.waitingFor.etaMs / 1000),
        }
      : null,
    resolved_inputs: null,
    result: null,
    error: node.error,
    logs_url: node.jobId === null ? null : `${originOf(call)}/api/jobs/${node.jobId}/logs`,
  }
}

/** How many nodes that wait or run are looked at closely: a fan-out of a thousand has nothing more to tell. */
const mostStandings = 100

/** How those nodes are doing that wait or run, by node. */
export async function standingsOf(nodes: readonly ExecutionNode[], call: Call): Promise<Map<string, Standing>> {
  const { store, jobs } = call.owners
  const live = nodes.filter(({ status }) => status === 'running' || status === 'ready')
  // Those that run have more to tell.
  live.sort((a, b) => Number(b.status === 'running') - Number(a.status === 'running'))
  const standings = new Map<string, Standing>()
  for (const { nodeId, jobId } of live.slice(0, mostStandings)) {
    const job = jobId === null ? undefined : await store.jobs.find(call.caller.organizationId, jobId)
    if (job) standings.set(nodeId, jobs.standing(job))
  }
  return standings
}

/**
 * The execution with what its nodes keep, and with the nodes themselves where they are wanted. Large results are put
 * among the embedded; without those, null stands in their places.
 */
export async function shownExecution(
  execution: ExecutionRecord,
  call: Call,
  { withNodes, withDag = false, embedded }: { withNodes: boolean; withDag?: boolean; embedded?: Embedded[] },
): Promise<z.input<typeof ExecutionObject>> {
  const { store } = call.owners
  const { organizationId, id, definition, status } = execution
  const nodes = withNodes || status === 'completed' ? await store.executions.nodes(organizationId, id) : []
  const completed = nodes.filter(node => node.status === 'completed')
  const results = await store.executions.results(
    organizationId,
    id,
    completed.map(({ nodeId }) => nodeId),
  )
  const standings = withNodes ? await standingsOf(nodes, call) : new Map<string, Standing>()
  const kept = new Map<string, ShownKept>()
  for (const { nodeId, task } of completed) {
    const outputs = definition.dag.nodes[nodeId]?.outputs ?? []
    kept.set(nodeId, await shownKept({ task, outputs }, results[nodeId]?.result ?? null, call, embedded))
  }
  return {
    ...executionSummary(execution),
    outputs:
      status === 'completed' ? Object.fromEntries([...kept].map(([nodeId, { output }]) => [nodeId, output])) : null,
    ...(withDag ? { dag: definition.dag } : {}),
    ...(withNodes
      ? {
          nodes: nodes.map(node => ({
            ...shownNode(node, call, standings.get(node.nodeId)),
            result: kept.get(node.nodeId)?.result ?? null,
          })),
        }
      : {}),
  }
}

/** The same as an answer, with large results whole. */
export async function executionAnswer(
  execution: ExecutionRecord,
  call: Call,
  how: { withNodes: boolean; withDag?: boolean },
): Promise<JsonText> {
  const embedded: Embedded[] = []
  const shown = await shownExecution(execution, call, { ...how, embedded })
  return new JsonText(JSON.stringify({ execution: shown }), undefined, embedded)
}

const isExecutionId = (id: string): boolean => id.startsWith('exec_') && isId(id)

/** The execution of the caller's organization. Throws Failure `not_found`. */
export async function findExecution(id: string, call: Call): Promise<ExecutionRecord> {
  const found = isExecutionId(id) ? await call.owners.store.executions.find(call.caller.organizationId, id) : undefined
  if (found) return found
  throw new Failure('not_found', `Execution ${id.slice(0, 64)} was not found.`)
}
