import { z } from 'zod'
import { conflict, Failure, invalid } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import {
  array,
  namedObject,
  nullableInteger,
  optional,
  optionalStringUpTo,
  strictObject,
  string,
} from '../../../core/schemas/fields.ts'
import { maxCommentLength } from '../../../core/schemas/waits.ts'
import type { Wait } from '../../../core/store/waits.ts'
import { waitName } from '../../../core/workflows/waits.ts'
import { pageEnd, pageFields, pageQuery } from '../../http/answer/page.ts'
import { found } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { filterOf } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'
import { ApprovalObject, approvalView, approverOf } from '../../views/approval-record.ts'
import { isJobId } from '../../views/job-record.ts'
import { findNode, OfNode } from './execution-items.ts'

const route = routeOf({ tag: 'Workflow executions' })

const Page = namedObject('ApprovalPage', 'A page of open approvals.', {
  approvals: array('The approvals that nobody has answered yet, newest first.', ApprovalObject),
  ...pageFields,
})
const Answer = namedObject('ApprovalAnswer', 'One approval.', { approval: ApprovalObject })
const Resolved = namedObject('NodeResolved', 'Confirms that a wait was ended.', {
  execution_id: string('Id of the execution.'),
  node_id: string('Id of the node.'),
  item: nullableInteger('Position of the item in the list of a node with `for_each`, from 0; null for others.'),
  resolved: z.literal(true),
})

const Resolve = strictObject('ResolveNode', 'How a node that waits, or an item of it, goes on.', {
  item: optional(
    z.int().min(0),
    'Of a node with `for_each`, and needed there: the position of the item in the list, from 0.',
  ),
  approved: optional(z.boolean(), 'Of an approval, and needed there: whether it is approved.'),
  answer: z.unknown().optional().describe('Of an approval with a form: the values by name.'),
  comment: optionalStringUpTo(maxCommentLength, 'Of an approval: why, in words.'),
  body: z.unknown().optional().describe('Of a wait for an event: the JSON of the event. Default: null.'),
})

type ApprovalOwners = Owners<'executions' | 'files' | 'organizations' | 'waits'>

/** Ends a wait as the caller says. Throws Failure. */
async function resolve(
  wait: Wait,
  { approved, answer, comment, body }: Omit<z.output<typeof Resolve>, 'item'>,
  { caller }: ClientExchange,
  owners: ApprovalOwners,
): Promise<void> {
  if (wait.awaits !== 'approval') {
    const wrong = approved !== undefined ? 'approved' : answer !== undefined ? 'answer' : undefined
    if (wrong) throw invalid(wrong, `What waits is ${waitName(wait)}, and for no person, so it takes no '${wrong}'.`)
    return owners.waits.arrive(wait, body ?? null)
  }
  if (approved === undefined)
    throw invalid('approved', `Say whether ${waitName(wait)} is approved.`, 'missing_required_parameter')
  const approver = await approverOf(caller, owners)
  if (!owners.waits.mayAnswer(wait, approver))
    throw new Failure(
      'insufficient_scope',
      `The workflow names who may answer ${waitName(wait)}, and the token '${approver.tokenName}' is not among them.`,
    )
  const by = approver.email === null ? { type: 'token' as const, name: approver.tokenName } : undefined
  await owners.waits.decide(wait, { approved, answer, comment }, by ?? { type: 'user', name: approver.email })
}

/** Finds the open wait of a node, or of an item of its list. Throws Failure for a wrong item, and `conflict` without a wait. */
async function findWait(
  params: z.output<typeof OfNode>,
  item: number | undefined,
  exchange: ClientExchange,
  owners: ApprovalOwners,
): Promise<Wait> {
  const { id, organizationId, definition, node } = await findNode(params, exchange, owners)
  const { nodeId, items, jobId, status } = node
  const isList = definition.dag.nodes[nodeId]!.for_each !== undefined
  if (!isList && item !== undefined) throw invalid('item', `The node '${nodeId}' has no list, so leave 'item' out.`)
  if (!isList) {
    const wait = jobId === null ? undefined : await owners.waits.find(organizationId, jobId)
    if (wait) return wait
    throw conflict(`The node '${nodeId}' does not wait for an answer: it is ${status}.`)
  }
  const list = `GET /api/workflow-executions/${id}/nodes/${encodeURIComponent(nodeId)}/items?status=waiting`
  if (item === undefined)
    throw invalid(
      'item',
      `The node '${nodeId}' asks once for each item of its list. Say which one with 'item', from 0: ${list} shows those that wait.`,
      'missing_required_parameter',
    )
  if (items !== null && item >= items.total)
    throw invalid(
      'item',
      `The list of the node '${nodeId}' has ${items.total} items, so the last 'item' is ${items.total - 1}.`,
    )
  const [found] = await owners.executions.items(organizationId, id, { nodeId, after: item - 1, limit: 1 })
  const own = found?.index === item ? found : undefined
  const wait = own?.jobId ? await owners.waits.find(organizationId, own.jobId) : undefined
  if (wait) return wait
  const state = own ? `is ${own.status}` : 'has not begun'
  throw conflict(`Item ${item} of the node '${nodeId}' does not wait for an answer: it ${state}. See: ${list}`)
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
      'Ends the wait of a node, or of an item of a node with `for_each`: answers its approval, sends its event, or lets a wait for a time end now. Of two answers the first counts, and the other gets `conflict`.',
    errorCodes: ['not_found', 'conflict', 'output_expired'],
    params: OfNode,
    body: Resolve,
    example: { approved: true, comment: 'Looks good.' },
    response: Resolved,
    handle: async ({ params, body }, exchange) => {
      const { item, ...answer } = body
      const wait = await findWait(params, item, exchange, owners)
      await resolve(wait, answer, exchange, owners)
      return { execution_id: wait.executionId, node_id: wait.nodeId, item: wait.item, resolved: true as const }
    },
  }),
]
