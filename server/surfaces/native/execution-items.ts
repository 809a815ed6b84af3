import { z } from 'zod'
import { itemStatuses } from '../../../core/dag/execution-state.ts'
import { Failure } from '../../../core/failure.ts'
import { array, namedObject, optionalOneOf, string } from '../../../core/schemas/fields.ts'
import { cursorDescription, pageEnd, pageFields, pageLimit } from '../../http/answer/page.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { answerUrl, approverOf } from '../../views/approval-record.ts'
import { ExecutionItemObject, shownItem } from '../../views/execution-nodes.ts'
import { findExecution } from '../../views/execution-record.ts'

const route = routeOf({ tag: 'Workflow executions' })
/** The path parameters of routes about one node. */
export const OfNode = z.object({
  id: string('Id of the execution: `exec_…`.'),
  node: string('Id of the node.'),
})
const Items = namedObject('ExecutionItemPage', 'A page of the items of a node.', {
  items: array('The items in the order of the list. Those after the last one have no job yet.', ExecutionItemObject),
  ...pageFields,
})

/** Finds a node of an execution. Throws Failure `not_found`. */
export async function findNode(
  { id, node: nodeId }: z.output<typeof OfNode>,
  exchange: ClientExchange,
  owners: Owners<'executions'>,
) {
  const { organizationId, definition } = await findExecution(id, exchange, owners)
  const node = (await owners.executions.nodes(organizationId, id)).find(one => one.nodeId === nodeId)
  if (!node) throw new Failure('not_found', `The execution ${id} has no node '${nodeId.slice(0, 64)}'.`)
  return { organizationId, id, definition, node }
}

export const itemsRoute = (owners: Owners<'executions' | 'organizations' | 'waits'>) =>
  route('GET /api/workflow-executions/:id/nodes/:node/items', 'user:read', {
    summary: 'List items of node',
    description:
      'Returns the items of a node with `for_each` in the order of its list, as far as they have or had a job. The job of an item has its inputs and its result. An item that waits has the address by which it can be answered.',
    errorCodes: ['not_found'],
    params: OfNode,
    query: z.strictObject({
      status: optionalOneOf('Only items with this status.', itemStatuses),
      limit: pageLimit,
      after: z.coerce.number().int().min(0).optional().describe(cursorDescription),
    }),
    response: Items,
    handle: async ({ params, query: { status, limit, after = -1 } }, exchange) => {
      const { organizationId, id } = await findNode(params, exchange, owners)
      const page = { nodeId: params.node, after, limit: limit + 1, ...(status === undefined ? {} : { status }) }
      const found = await owners.executions.items(organizationId, id, page)
      const items = found.slice(0, limit)
      const next = found.length > limit ? String(items.at(-1)!.index) : null
      let known: ReturnType<typeof approverOf> | undefined
      const approver = () => (known ??= approverOf(exchange.caller, owners))
      const shown = items.map(async item => shownItem(item, await answerUrl(item, exchange, approver, owners)))
      return { items: await Promise.all(shown), ...pageEnd(next) }
    },
  })
