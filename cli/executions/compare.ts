import { isDeepStrictEqual } from 'node:util'
import type { ExecutionNode } from './execution.ts'

/** A part of a node that can differ between two executions. */
const compared = ['status', 'model', 'inputs', 'result', 'error'] as const
type ComparedPart = (typeof compared)[number]

/** A node in two executions; undefined: the execution has no such node. */
export interface NodePair {
  id: string
  before: ExecutionNode | undefined
  after: ExecutionNode | undefined
  /** What differs. Inputs and results that are too long for a list of nodes are not known, and do not count. */
  different: ComparedPart[]
}

/** Pairs the nodes of two executions by their ids, in the order of the first, then those that only the second has. */
export function pairNodes(first: readonly ExecutionNode[], second: readonly ExecutionNode[]): NodePair[] {
  const others = new Map(second.map(node => [node.node_id, node]))
  const own = new Set(first.map(({ node_id }) => node_id))
  return [
    ...first.map(before => pairOf(before.node_id, before, others.get(before.node_id))),
    ...second.filter(({ node_id }) => !own.has(node_id)).map(after => pairOf(after.node_id, undefined, after)),
  ]
}

function pairOf(id: string, before: ExecutionNode | undefined, after: ExecutionNode | undefined): NodePair {
  const [one, other] = [before && partsOf(before), after && partsOf(after)]
  const different = one && other ? compared.filter(part => isDifferent(part, one[part], other[part])) : []
  return { id, before, after, different }
}

const partsOf = (node: ExecutionNode): Record<ComparedPart, unknown> => ({
  status: node.status,
  model: node.model_id,
  inputs: node.resolved_inputs ?? null,
  result: node.result ?? null,
  error: node.error?.message ?? null,
})

function isDifferent(part: ComparedPart, one: unknown, other: unknown): boolean {
  if ((part === 'inputs' || part === 'result') && (one === null || other === null)) return false
  return !isDeepStrictEqual(one, other)
}
