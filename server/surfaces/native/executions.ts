import { z } from 'zod'
import { maxMembers } from '../../../core/dag/definition.ts'
import { executionStatuses } from '../../../core/dag/execution-state.ts'
import { invalid } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import {
  array,
  namedObject,
  optional,
  optionalOneOf,
  optionalStringUpTo,
  queryTime,
  string,
} from '../../../core/schemas/fields.ts'
import type { ExecutionRecord } from '../../../core/store/workflows.ts'
import {
  cursorDescription,
  deletedAnswer,
  deletedObject,
  pageEnd,
  pageFields,
  pageLimit,
} from '../../http/answer/page.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { type Embedded, JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { filterOf } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'
import { answerUrl, approverOf } from '../../views/approval-record.ts'
import {
  ExecutionNodeObject,
  progressOfNodes,
  shownNode,
  shownNodes,
  shownPin,
  shownResult,
} from '../../views/execution-nodes.ts'
import {
  ExecutionObject,
  ExecutionSummary,
  executionAnswer,
  executionSummary,
  findExecution,
} from '../../views/execution-record.ts'
import { definitionOf, findWorkflow } from '../../views/workflow-record.ts'
import {
  ExecuteRequest,
  type ExecutionTerms,
  executionOptionsOf,
  RetryRequest,
  RunRequest,
  retryFromOf,
} from '../../work/execution-request.ts'
import { isRunning, waitForExecution } from '../../work/wait.ts'
import { compareRoute } from './execution-comparison.ts'
import { findNode, itemsRoute, OfNode } from './execution-items.ts'
import { estimateRoutes, exampleDag } from './workflow-estimates.ts'

const route = routeOf({ tag: 'Workflow executions' })
const Filter = z.strictObject({
  status: optionalOneOf('Only executions with this status.', executionStatuses),
  created_after: queryTime.describe('Only executions created after this time, in Unix seconds.'),
  metadata: optional(
    z.record(z.string(), z.string()),
    '`?metadata[ref]=42`: only executions with exactly this value under this name.',
  ),
  tag: optionalStringUpTo(64, 'Only executions with this tag.'),
  limit: pageLimit,
  after: optionalStringUpTo(64, cursorDescription),
})
const Page = namedObject('ExecutionPage', 'A page of executions.', {
  executions: array('The executions, newest first.', ExecutionSummary),
  ...pageFields,
})

async function list(
  exchange: ClientExchange,
  { created_after, ...query }: z.output<typeof Filter> & { workflow_id?: string | undefined },
  { executions }: Owners<'executions'>,
): Promise<z.input<typeof Page>> {
  const { after } = query
  if (after !== undefined && !isId(after, 'exec_')) throw invalid('after', "'after' is not a cursor of this list.")
  const page = await executions.list(exchange.caller.organizationId, {
    ...filterOf(query),
    ...(created_after === undefined ? {} : { createdAfter: created_after * 1000 }),
  })
  return { executions: page.executions.map(executionSummary), ...pageEnd(page.next) }
}

const One = z.object({ id: string('Id of the execution: `exec_…`.') })
const OfWorkflow = z.object({ id: string('Id of the workflow: `wf_…`.') })
const Answer = namedObject('ExecutionAnswer', 'One execution.', { execution: ExecutionObject })
type ExecutionOwners = Owners<
  | 'admission'
  | 'config'
  | 'cpu'
  | 'executions'
  | 'files'
  | 'jobs'
  | 'organizations'
  | 'registry'
  | 'waits'
  | 'webhooks'
  | 'workflows'
>

type Started = Promise<{ execution: ExecutionRecord; replayed: boolean }>

/** Answers with an execution once it has been stored. */
async function answer(exchange: ClientExchange, started: Started, owners: ExecutionOwners): Promise<JsonText> {
  const { execution, replayed } = await started
  if (replayed) exchange.header('idempotent-replayed', 'true')
  return executionAnswer(execution, exchange, owners, { withNodes: false })
}

const Nodes = namedObject('ExecutionNodes', 'The nodes of an execution.', {
  nodes: array('The nodes.', ExecutionNodeObject),
})
const OneNode = namedObject('ExecutionNodeAnswer', 'One node of an execution.', { node: ExecutionNodeObject })
const Deleted = deletedObject(
  'ExecutionDeleted',
  'Confirms that an execution was deleted.',
  ['workflow_execution', 'execution'],
  {},
)

/** Inputs are kept with the execution, so files in them are sent beforehand. */
const uploadFirst = 'Upload large files with POST /std/v1/files, and send their ids (file-…) or URLs as parameters.'

const startRoutes = (owners: ExecutionOwners) => [
  route('POST /api/workflows/:id/execute', 'user:write', {
    bucket: 'jobs',
    summary: 'Execute workflow',
    description:
      'Starts an execution of a stored workflow. Once the answer has arrived, the execution survives crashes and restarts. A workflow that cannot be executed is refused with `invalid_graph`, and no execution is created. If as many executions run as the `concurrency` of the workflow allows, the new one waits, or is refused with `conflict`.',
    errorCodes: [...errorGroups.submit, 'invalid_graph', 'not_found', 'conflict'],
    params: OfWorkflow,
    body: ExecuteRequest,
    whenTooLarge: uploadFirst,
    example: { input_params: { topic: 'cats' } },
    response: Answer,
    status: 202,
    handle: async ({ params, body: { version, ...terms } }, exchange) => {
      const workflow = await findWorkflow(params.id, exchange, owners, version)
      const workflowVersion = { id: workflow.id, version: workflow.version }
      const options = executionOptionsOf(exchange, workflow, workflowVersion, terms, owners)
      return answer(exchange, owners.executions.execute(options), owners)
    },
  }),
  route('POST /api/workflows/run', 'user:write', {
    bucket: 'jobs',
    summary: 'Run workflow without storing it',
    description:
      'Starts an execution of the workflow in the body. The workflow is kept with the execution only. A workflow that cannot be executed is refused with `invalid_graph`, and no execution is created.',
    errorCodes: [...errorGroups.submit, 'invalid_graph'],
    members: maxMembers,
    body: RunRequest,
    whenTooLarge: uploadFirst,
    example: { dag: exampleDag },
    response: Answer,
    status: 202,
    handle: async ({ body: { dag, parameters, name, on_failure, ...terms } }, exchange) => {
      const definition = definitionOf({ name: name ?? 'Ad hoc', dag, parameters, on_failure })
      const options = executionOptionsOf(exchange, definition, null, terms, owners)
      return answer(exchange, owners.executions.execute(options), owners)
    },
  }),
]

const readRoutes = (owners: ExecutionOwners) => [
  route('GET /api/workflow-executions/:id', 'user:read', {
    summary: 'Get execution',
    description:
      'Returns an execution with its nodes and results. With `?wait=30` the answer comes when it has ended, or after 30 s. If the token is revoked, expires or loses the scope meanwhile, the answer is 401 or 403 within 2 s.',
    errorCodes: ['not_found', 'output_expired'],
    params: One,
    query: z.strictObject({
      include: z
        .enum(['nodes', 'dag', 'none'])
        .default('nodes')
        .describe('What to include: `nodes`, `dag` (nodes and the graph that is executed) or `none`.'),
      wait: z.coerce.number().min(0).max(120).default(0).describe('Seconds to wait for the end, 120 at most.'),
    }),
    response: Answer,
    handle: async ({ params, query }, exchange) => {
      let execution = await findExecution(params.id, exchange, owners)
      if (query.wait > 0 && isRunning(execution)) {
        await waitForExecution(execution.id, query.wait, exchange, owners)
        execution = await findExecution(params.id, exchange, owners)
      }
      if (isRunning(execution)) exchange.pollAgain()
      return executionAnswer(execution, exchange, owners, {
        withNodes: query.include !== 'none',
        withDag: query.include === 'dag',
      })
    },
  }),
  route('GET /api/workflow-executions/:id/nodes', 'user:read', {
    summary: 'List nodes of execution',
    description: 'Returns the nodes with their states and what they keep of their results.',
    errorCodes: ['not_found', 'output_expired'],
    params: One,
    response: Nodes,
    handle: async ({ params }, exchange) => {
      const execution = await findExecution(params.id, exchange, owners)
      const nodes = await owners.executions.nodes(execution.organizationId, execution.id)
      const embedded: Embedded[] = []
      const shown = await shownNodes(execution, nodes, exchange, owners, embedded)
      return new JsonText(JSON.stringify({ nodes: shown.nodes }), undefined, embedded)
    },
  }),
  route('GET /api/workflow-executions/:id/nodes/:node', 'user:read', {
    summary: 'Get node of execution',
    description: 'Returns one node with its inputs, in which all references are replaced, and its whole result.',
    errorCodes: ['not_found', 'output_expired'],
    params: OfNode,
    response: OneNode,
    handle: async ({ params }, exchange) => {
      const { organizationId, definition, node } = await findNode(params, exchange, owners)
      const job = node.jobId === null ? undefined : await owners.jobs.find(organizationId, node.jobId)
      const progresses = await progressOfNodes([node], exchange, owners)
      const embedded: Embedded[] = []
      const shown = {
        ...shownNode(node, exchange, progresses.get(node.nodeId)),
        resolved_inputs: job ? await owners.executions.inputsOf(job) : null,
        result: job
          ? await shownResult(node.task, job.result, exchange, owners, embedded)
          : await shownPin(definition.dag.nodes[node.nodeId]?.pin ?? null, organizationId, exchange, owners),
        answer_url: await answerUrl(node, exchange, () => approverOf(exchange.caller, owners), owners),
      }
      return new JsonText(JSON.stringify({ node: shown }), undefined, embedded)
    },
  }),
]

const changeRoutes = (owners: ExecutionOwners) => [
  route('POST /api/workflow-executions/:id/cancel', 'user:write', {
    bucket: 'api',
    summary: 'Cancel execution',
    description: 'Ends an execution: nodes that run are cancelled at once, the others are not run.',
    errorCodes: ['not_found', 'execution_already_finished'],
    params: One,
    response: Answer,
    handle: async ({ params }, exchange) => {
      const { id, organizationId } = await findExecution(params.id, exchange, owners)
      const cancelled =
        (await owners.executions.cancel(organizationId, id)) ?? (await findExecution(id, exchange, owners))
      return executionAnswer(cancelled, exchange, owners, { withNodes: false })
    },
  }),
  route('POST /api/workflow-executions/:id/retry', 'user:write', {
    bucket: 'jobs',
    summary: 'Retry execution',
    description:
      'Starts a new execution of the same workflow: from the nodes that did not complete, from the start, or from one node. Results of the other nodes are reused, and those of completed items of a list that runs again. With `changes` nodes get other inputs, and they and the nodes after them run again.',
    errorCodes: [...errorGroups.submit, 'invalid_graph', 'not_found', 'conflict'],
    params: One,
    members: maxMembers,
    body: RetryRequest,
    whenTooLarge: uploadFirst,
    example: { from: 'failed' },
    response: Answer,
    status: 202,
    handle: async ({ params, body }, exchange) => {
      const before = await findExecution(params.id, exchange, owners)
      const { definition, workflowId, workflowVersion } = before
      const workflow = workflowId === null ? null : { id: workflowId, version: workflowVersion! }
      const terms: ExecutionTerms = { input_params: body.input_params ?? before.inputParams, priority: before.priority }
      const options = {
        ...executionOptionsOf(exchange, definition, workflow, terms, owners),
        timeout: before.timeoutMs / 1000,
        budget: before.budget === null ? undefined : before.budget / 1e6,
        metadata: before.metadata,
        webhook: before.webhook ?? null,
      }
      const retry = { from: retryFromOf(body.from), changes: body.changes?.nodes }
      return answer(exchange, owners.executions.retry(before, retry, options), owners)
    },
  }),
  route('DELETE /api/workflow-executions/:id', 'user:write', {
    summary: 'Delete execution',
    description: 'Deletes an execution that has ended, with its jobs and files. Cancel one that has not ended first.',
    errorCodes: ['not_found', 'conflict'],
    params: One,
    response: Deleted,
    handle: async ({ params }, exchange) => {
      const { id, organizationId } = await findExecution(params.id, exchange, owners)
      await owners.executions.remove(organizationId, id)
      return deletedAnswer('workflow_execution', id)
    },
  }),
]

const listRoutes = (owners: ExecutionOwners) => [
  route('GET /api/workflow-executions', 'user:read', {
    summary: 'List executions',
    description: 'Returns executions of the organization, newest first, without nodes and results.',
    query: Filter.extend({ workflow_id: optionalStringUpTo(64, 'Only executions of this workflow.') }),
    response: Page,
    handle: ({ query }, exchange) => list(exchange, query, owners),
  }),
  route('GET /api/workflows/:id/executions', 'user:read', {
    summary: 'List executions of workflow',
    description: 'Returns executions of one workflow, newest first, without nodes and results.',
    errorCodes: ['not_found'],
    params: OfWorkflow,
    query: Filter,
    response: Page,
    handle: async ({ params, query }, exchange) => {
      const { id } = await findWorkflow(params.id, exchange, owners)
      return list(exchange, { ...query, workflow_id: id }, owners)
    },
  }),
]

export const executionRoutes = (owners: ExecutionOwners) => [
  ...startRoutes(owners),
  ...estimateRoutes(owners),
  ...readRoutes(owners),
  compareRoute(owners),
  itemsRoute(owners),
  ...changeRoutes(owners),
  ...listRoutes(owners),
]
