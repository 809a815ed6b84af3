import { z } from 'zod'
import { maxMembers } from '../../../core/dag/definition.ts'
import { namedObject, string } from '../../../core/schemas/fields.ts'
import { conversationTask } from '../../../core/schemas/task.ts'
import type { WorkflowDefinition } from '../../../core/store/workflows.ts'
import { estimateWorkflow } from '../../../core/workflows/estimate-workflow.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { shownEstimate, WorkflowEstimate } from '../../views/workflow-estimate.ts'
import { findWorkflow } from '../../views/workflow-record.ts'
import { EstimateDefinition, EstimateRequest, selectionOf } from '../../work/execution-request.ts'

const route = routeOf({ tag: 'Workflow executions' })
type EstimateOwners = Owners<'admission' | 'jobs' | 'registry' | 'workflows'>

/** A workflow of one node, for the examples of the reference. */
export const exampleDag = {
  nodes: {
    write: {
      model_id: 'infer/tiny-chat',
      task: conversationTask,
      inputs: { messages: [{ role: 'user' as const, content: 'Hello' }], max_tokens: 16 },
    },
  },
  edges: [],
}

const Estimated = namedObject('WorkflowEstimateAnswer', 'An estimate.', { estimate: WorkflowEstimate })
const howEstimated =
  'Cost and time come from the last runs of the same task and model in the organization, the most from prices, and waiting from the queue. Each node is taken to run once: conditions, retries and reused results are not foreseen. How long nodes wait for people, events or times is not known and not in the sums: the `timeout` of the execution does not count it either.'

async function estimate(
  exchange: ClientExchange,
  definition: Pick<WorkflowDefinition, 'dag' | 'parameters'>,
  request: z.output<typeof EstimateRequest> | z.output<typeof EstimateDefinition>,
  { admission, jobs, registry }: EstimateOwners,
): Promise<z.input<typeof Estimated>> {
  const { organizationId } = exchange.caller
  const options = { organizationId, definition, inputParams: request.input_params, selection: selectionOf(request) }
  const model = (name: string) => (admission.allowed(exchange.caller, name) ? registry.find(name) : undefined)
  const { recentRuns, queueForecast } = jobs
  return { estimate: shownEstimate(await estimateWorkflow(options, { recentRuns, queueForecast, model })) }
}

export const estimateRoutes = (owners: EstimateOwners) => [
  route('POST /api/workflows/:id/estimate', 'user:write', {
    bucket: 'api',
    summary: 'Estimate workflow',
    description: `Returns what an execution of a stored workflow would cost and how long it would take. ${howEstimated}`,
    errorCodes: ['not_found', 'invalid_graph'],
    params: z.object({ id: string('Id of the workflow: `wf_…`.') }),
    body: EstimateRequest,
    example: { input_params: { topic: 'cats' } },
    response: Estimated,
    handle: async ({ params, body }, exchange) =>
      estimate(exchange, await findWorkflow(params.id, exchange, owners, body.version), body, owners),
  }),
  route('POST /api/workflows/estimate', 'user:write', {
    bucket: 'api',
    summary: 'Estimate workflow without storing it',
    description: `Returns what an execution of the workflow in the body would cost and how long it would take. ${howEstimated}`,
    errorCodes: ['not_found', 'invalid_graph'],
    members: maxMembers,
    body: EstimateDefinition,
    example: { dag: exampleDag },
    response: Estimated,
    handle: ({ body }, exchange) =>
      estimate(exchange, { dag: body.dag, parameters: body.parameters ?? null }, body, owners),
  }),
]
