import { z } from 'zod'
import { string } from '../../../core/schemas/fields.ts'
import { routeOf } from '../../http/request/route.ts'
import { compareNodes, ExecutionComparison } from '../../views/execution-comparison.ts'
import { shownNodes } from '../../views/execution-nodes.ts'
import { findExecution } from '../../views/execution-record.ts'

const route = routeOf({ tag: 'Workflow executions' })

/** Two executions are read, and their nodes with inputs and results. */
export const compareRoute = (owners: Parameters<typeof shownNodes>[3]) =>
  route('GET /api/workflow-executions/:id/compare', 'user:read', {
    summary: 'Compare executions',
    description:
      'Returns what differs between two executions, node by node: status, model, inputs, result (what `outputs` of the node keeps of it) and error, with time and cost of both. Inputs and results that are too long for a list of nodes are not compared.',
    errorCodes: ['not_found', 'output_expired'],
    params: z.object({ id: string('Id of the first execution: `exec_…`.') }),
    query: z.strictObject({ with: z.string().max(64).describe('Id of the second execution.') }),
    response: ExecutionComparison,
    handle: async ({ params, query }, exchange) => {
      const nodesOf = async (id: string) => {
        const execution = await findExecution(id, exchange, owners)
        const nodes = await owners.executions.nodes(execution.organizationId, id)
        return (await shownNodes(execution, nodes, exchange, owners)).nodes
      }
      const nodes = compareNodes(await nodesOf(params.id), await nodesOf(query.with))
      return { executions: [params.id, query.with], nodes }
    },
  })
