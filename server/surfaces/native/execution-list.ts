import { z } from 'zod'
import { executionStatuses } from '../../../core/dag/advance.ts'
import { Failure } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import { string } from '../../../core/schemas/fields.ts'
import { cursorDescription, pageFields, pageLimit } from '../../http/answer/page.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { ExecutionSummary, executionSummary } from '../../views/execution-record.ts'
import { findWorkflow } from '../../views/workflow-record.ts'

const route = routeOf({ tag: 'Workflow executions' })
const Filter = z.strictObject({
  status: z.enum(executionStatuses).optional().describe('Only executions with this status.'),
  created_after: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe('Only executions created after this time, in Unix seconds.'),
  metadata: z
    .record(z.string(), z.string())
    .optional()
    .describe('`?metadata[ref]=42`: only executions with exactly this value under this name.'),
  limit: pageLimit,
  after: z.string().max(64).optional().describe(cursorDescription),
})
const Page = z
  .object({ executions: z.array(ExecutionSummary).describe('The executions, newest first.'), ...pageFields })
  .meta({ id: 'ExecutionPage', description: 'A page of executions.' })

type ListOwners = Pick<Owners, 'executions'>

async function list(
  call: Call,
  { status, created_after, metadata, limit, after }: z.output<typeof Filter>,
  workflowId: string | undefined,
  owners: ListOwners,
): Promise<z.input<typeof Page>> {
  if (after !== undefined && !(after.startsWith('exec_') && isId(after)))
    throw new Failure('invalid_value', "'after' is not a cursor of this list.", { param: 'after' })
  const { executions, next } = await owners.executions.list(call.caller.organizationId, {
    limit,
    ...(after === undefined ? {} : { after }),
    ...(workflowId === undefined ? {} : { workflowId }),
    ...(status === undefined ? {} : { status }),
    ...(created_after === undefined ? {} : { createdAfter: created_after * 1000 }),
    ...(metadata === undefined ? {} : { metadata }),
  })
  return { executions: executions.map(executionSummary), has_more: next !== null, next_cursor: next }
}

export const executionListRoutes = (owners: ListOwners & Pick<Owners, 'workflows'>) => [
  route('GET /api/workflow-executions', 'user:read', {
    summary: 'List executions',
    description: 'Returns executions of the organization, newest first, without nodes and results.',
    query: Filter.extend({ workflow_id: z.string().max(64).optional().describe('Only executions of this workflow.') }),
    response: Page,
    handle: ({ query: { workflow_id, ...filter } }, call) => list(call, filter, workflow_id, owners),
  }),
  route('GET /api/workflows/:id/executions', 'user:read', {
    summary: 'List executions of workflow',
    description: 'Returns executions of one workflow, newest first, without nodes and results.',
    errorCodes: ['not_found'],
    params: z.object({ id: string('Id of the workflow: `wf_…`.') }),
    query: Filter,
    response: Page,
    handle: async ({ params, query }, call) =>
      list(call, query, (await findWorkflow(params.id, call, owners)).id, owners),
  }),
]
