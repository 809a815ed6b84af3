import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import { array, namedObject, optional, optionalStringUpTo, strictObject, string } from '../../../core/schemas/fields.ts'
import { maxCommentLength } from '../../../core/schemas/waits.ts'
import type { Wait } from '../../../core/store/waits.ts'
import { pageEnd, pageFields, pageQuery } from '../../http/answer/page.ts'
import { found } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { filterOf } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'
import { ApprovalObject, approvalView, approverOf } from '../../views/approval-record.ts'
import { findExecution } from '../../views/execution-record.ts'
import { isJobId } from '../../views/job-record.ts'

const route = routeOf({ tag: 'Workflow executions' })

const Page = namedObject('ApprovalPage', 'A page of open approvals.', {
  approvals: array('The approvals that nobody has answered yet, newest first.', ApprovalObject),
  ...pageFields,
})
const Answer = namedObject('ApprovalAnswer', 'One approval.', { approval: ApprovalObject })
const Resolved = namedObject('NodeResolved', 'Confirms that a wait was ended.', {
  execution_id: string('Id of the execution.'),
  node_id: string('Id of the node.'),
  resolved: z.literal(true),
})

const Resolve = strictObject('ResolveNode', 'How a node that waits goes on.', {
  approved: optional(z.boolean(), 'Of an approval, and needed there: whether it is approved.'),
  answer: z.unknown().optional().describe('Of an approval with a form: the values by name.'),
  comment: optionalStringUpTo(maxCommentLength, 'Of an approval: why, in words.'),
  body: z.unknown().optional().describe('Of a wait for an event: the JSON of the event. Default: null.'),
})

type ApprovalOwners = Owners<'executions' | 'files' | 'organizations' | 'waits'>

/** Ends a wait as the caller says. Throws Failure. */
async function resolve(
  wait: Wait,
  { approved, answer, comment, body }: z.output<typeof Resolve>,
  { caller }: ClientExchange,
  owners: ApprovalOwners,
): Promise<void> {
  if (wait.awaits !== 'approval') {
    const wrong = approved !== undefined ? 'approved' : answer !== undefined ? 'answer' : undefined
    if (wrong) throw invalid(wrong, `The node '${wait.nodeId}' waits for no person, so it takes no '${wrong}'.`)
    return owners.waits.arrive(wait, body ?? null)
  }
  if (approved === undefined)
    throw invalid('approved', `Say whether '${wait.nodeId}' is approved.`, 'missing_required_parameter')
  const approver = await approverOf(caller, owners)
  if (!owners.waits.mayAnswer(wait, approver))
    throw new Failure(
      'insufficient_scope',
      `The workflow names who may answer '${wait.nodeId}', and the token '${approver.tokenName}' is not among them.`,
    )
  const by = approver.email === null ? { type: 'token' as const, name: approver.tokenName } : undefined
  await owners.waits.decide(wait, { approved, answer, comment }, by ?? { type: 'user', name: approver.email })
}

/** The routes of nodes that wait for a person or an event. */
export const approvalRoutes = (owners: ApprovalOwners) => [
  route('GET /api/approvals', 'user:read', {
    summary: 'List approvals',
    description: 'Returns the open approvals of the organization, newest first: questions that workflows ask people.',
    query: z.strictObject({
      workflow_id: optionalStringUpTo(64, 'Only approvals of this workflow.'),
      execution_id: optionalStringUpTo(64, 'Only approvals of this execution.'),
      ...pageQuery(isJobId),
    }),
    response: Page,
    handle: async ({ query }, exchange) => {
      const { organizationId } = exchange.caller
      const { waits, next } = await owners.waits.list(organizationId, { awaits: 'approval', ...filterOf(query) })
      const approver = await approverOf(exchange.caller, owners)
      return { approvals: waits.map(wait => approvalView(wait, exchange, approver, owners)), ...pageEnd(next) }
    },
  }),
  route('GET /api/approvals/:id', 'user:read', {
    summary: 'Get approval',
    description: 'Returns an open approval. One that was answered is not found: its answer is the result of its node.',
    errorCodes: ['not_found'],
    params: z.object({ id: string('Id of the approval: `job_…`.') }),
    response: Answer,
    handle: async ({ params }, exchange) => {
      const wait = isId(params.id, 'job_')
        ? await owners.waits.find(exchange.caller.organizationId, params.id)
        : undefined
      const open = found(wait?.awaits === 'approval' && wait, 'The open approval', params.id)
      return { approval: approvalView(open, exchange, await approverOf(exchange.caller, owners), owners) }
    },
  }),
  route('POST /api/workflow-executions/:id/nodes/:node/resolve', 'user:write', {
    bucket: 'api',
    summary: 'Resolve node',
    description:
      'Ends the wait of a node: answers its approval, sends its event, or lets a wait for a time end now. Of two answers the first counts, and the other gets `conflict`.',
    errorCodes: ['not_found', 'conflict', 'output_expired'],
    params: z.object({ id: string('Id of the execution: `exec_…`.'), node: string('Id of the node.') }),
    body: Resolve,
    example: { approved: true, comment: 'Looks good.' },
    response: Resolved,
    handle: async ({ params, body }, exchange) => {
      const { id, organizationId } = await findExecution(params.id, exchange, owners)
      const node = (await owners.executions.nodes(organizationId, id)).find(({ nodeId }) => nodeId === params.node)
      if (!node) throw new Failure('not_found', `The execution ${id} has no node '${params.node.slice(0, 64)}'.`)
      const wait = node.jobId === null ? undefined : await owners.waits.find(organizationId, node.jobId)
      if (!wait)
        throw new Failure('conflict', `The node '${node.nodeId}' does not wait for an answer: it is ${node.status}.`)
      await resolve(wait, body, exchange, owners)
      return { execution_id: id, node_id: node.nodeId, resolved: true as const }
    },
  }),
]
