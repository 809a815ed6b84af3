import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { nodeStatuses } from '../../core/dag/execution-state.ts'
import {
  array,
  namedObject,
  nullable,
  nullableInteger,
  nullableNumber,
  oneOf,
  string,
} from '../../core/schemas/fields.ts'
import type { ExecutionNodeObject } from './execution-nodes.ts'

/** What can differ between two runs of a node. */
const compared = ['status', 'model', 'inputs', 'result', 'error'] as const
type Part = (typeof compared)[number]

const Run = () =>
  z.object({
    status: oneOf('State of the node.', nodeStatuses),
    model_id: string('Id of the model.'),
    duration_ms: nullableInteger('Milliseconds from start to end; null before the end.'),
    cost: nullableNumber('Cost of the node; null before the end.'),
  })

export const ExecutionComparison = namedObject(
  'ExecutionComparison',
  'What differs between two executions, node by node.',
  {
    executions: array('Ids of the first and the second execution.', z.string()),
    nodes: array(
      'The nodes in the order of the first execution, then those that only the second has.',
      z.object({
        node_id: string('Id of the node.'),
        first: nullable(Run(), 'The node in the first execution; null if it has none.'),
        second: nullable(Run(), 'The node in the second execution; null if it has none.'),
        different: array('What differs; nothing if one of them lacks the node.', z.enum(compared)),
        unknown: array('What is not compared, because it is too long for a list of nodes.', z.enum(compared)),
      }),
    ),
  },
)
type Comparison = z.input<typeof ExecutionComparison>['nodes'][number]

/** The part of a node that is compared. */
export type ComparedNode = Pick<
  z.input<typeof ExecutionNodeObject>,
  'node_id' | 'status' | 'model_id' | 'duration_ms' | 'cost' | 'resolved_inputs' | 'result' | 'error'
>

/** Compares the nodes of two executions, which are paired by their ids. Pure. */
export function compareNodes(first: readonly ComparedNode[], second: readonly ComparedNode[]): Comparison[] {
  const others = new Map(second.map(node => [node.node_id, node]))
  const own = new Set(first.map(({ node_id }) => node_id))
  return [
    ...first.map(node => comparisonOf(node.node_id, node, others.get(node.node_id))),
    ...second.filter(({ node_id }) => !own.has(node_id)).map(node => comparisonOf(node.node_id, undefined, node)),
  ]
}

function comparisonOf(id: string, first: ComparedNode | undefined, second: ComparedNode | undefined): Comparison {
  const shown = { node_id: id, first: runOf(first), second: runOf(second) }
  if (!first || !second) return { ...shown, different: [], unknown: [] }
  const [one, other] = [partsOf(first), partsOf(second)]
  const absent = compared.filter(part => lacksValue(part, one[part], other[part]))
  const different = compared.filter(part => !absent.includes(part) && !isDeepStrictEqual(one[part], other[part]))
  // Completed nodes have inputs and a result, so these are long.
  const unknown = first.status === 'completed' && second.status === 'completed' ? absent : []
  return { ...shown, different, unknown }
}

const runOf = (node: ComparedNode | undefined): Comparison['first'] =>
  node ? { status: node.status, model_id: node.model_id, duration_ms: node.duration_ms, cost: node.cost } : null

const partsOf = (node: ComparedNode): Record<Part, unknown> => ({
  status: node.status,
  model: node.model_id,
  inputs: node.resolved_inputs ?? null,
  result: node.result ?? null,
  error: node.error?.message ?? null,
})

/** Whether one of two runs has no value that could be compared. */
const lacksValue = (part: Part, one: unknown, other: unknown): boolean =>
  (part === 'inputs' || part === 'result') && (one === null || other === null)
