import type { Dag } from '../dag/definition.ts'
import { referencesIn } from './bind.ts'
import { reachOf } from './reach.ts'
import type { Reference } from './references.ts'

export interface Edge {
  from: string
  to: string
}

/** A reference of a node to another one, and where it stands. */
export interface NodeReference {
  node: string
  path: string
  reference: Reference
  /** The node that is meant. */
  target: string
}

/**
 * What must be done before what: the edges that were drawn, and those that a reference implies. Edges to nodes that are
 * not there, from a node to itself, and doubled ones are left out.
 */
export interface Graph {
  /** In the order of the definition. */
  nodes: readonly string[]
  successors: ReadonlyMap<string, readonly string[]>
  predecessors: ReadonlyMap<string, readonly string[]>
}

export function graphOf(nodes: readonly string[], edges: readonly Edge[]): Graph {
  const successors = new Map(nodes.map(node => [node, new Set<string>()]))
  const predecessors = new Map(nodes.map(node => [node, new Set<string>()]))
  for (const { from, to } of edges) {
    if (from === to || !successors.has(from) || !predecessors.has(to)) continue
    successors.get(from)!.add(to)
    predecessors.get(to)!.add(from)
  }
  const listed = (sets: Map<string, Set<string>>) => new Map([...sets].map(([node, others]) => [node, [...others]]))
  return { nodes, successors: listed(successors), predecessors: listed(predecessors) }
}

/** Every reference from one node to another; those that cannot be read are left out. */
export const nodeReferences = ({ nodes }: Dag): NodeReference[] =>
  Object.entries(nodes).flatMap(([node, { inputs }]) =>
    referencesIn(inputs).flatMap(({ path, reference }) =>
      'root' in reference && reference.root === 'nodes'
        ? [{ node, path, reference, target: String(reference.path[0]) }]
        : [],
    ),
  )

/**
 * The nodes in ranks: each after all that must be done before it, and as early as that allows. Undefined when the graph
 * has a cycle.
 */
export function ranksOf({ nodes, successors, predecessors }: Graph): string[][] | undefined {
  const missing = new Map(nodes.map(node => [node, predecessors.get(node)!.length]))
  const ranks: string[][] = []
  let placed = 0
  for (let rank = nodes.filter(node => missing.get(node) === 0); rank.length > 0; ) {
    ranks.push(rank)
    placed += rank.length
    const next: string[] = []
    for (const node of rank)
      for (const after of successors.get(node)!) {
        const left = missing.get(after)! - 1
        missing.set(after, left)
        if (left === 0) next.push(after)
      }
    rank = next
  }
  return placed === nodes.length ? ranks : undefined
}

/** One of the shortest cycles, its first node again at its end; undefined when there is none. */
export function shortestCycle(graph: Graph): string[] | undefined {
  if (ranksOf(graph)) return undefined
  const { nodes } = graph
  const numbers = new Map(nodes.map((node, at) => [node, at]))
  const after = nodes.map(node => graph.successors.get(node)!.map(next => numbers.get(next)!))
  const before = new Int32Array(nodes.length)
  let best: number[] | undefined
  for (let start = 0; start < nodes.length; start++) {
    before.fill(-1)
    const most: number = best ? best.length - 2 : nodes.length
    for (let ring = [start], length = 1; ring.length > 0 && before[start] === -1 && length <= most; length++) {
      const next: number[] = []
      for (const node of ring)
        for (const one of after[node]!)
          if (before[one] === -1) {
            before[one] = node
            next.push(one)
          }
      ring = next
    }
    if (before[start] === -1) continue
    const cycle = [start]
    for (let node = before[start]!; node !== start; node = before[node]!) cycle.unshift(node)
    best = [start, ...cycle]
  }
  return best?.map(node => nodes[node]!)
}

/**
 * The edges that references imply beyond those that are drawn, each with its reference, and the references that would
 * close a circle and so can never be had.
 */
export function impliedEdges(
  drawn: Graph,
  references: readonly NodeReference[],
): { implied: (Edge & { by: NodeReference })[]; circular: NodeReference[] } {
  const known = new Set(drawn.nodes)
  const reach = reachOf(drawn)
  const asked = new Map<string, Edge & { by: NodeReference }>()
  for (const by of references) {
    const { target: from, node: to } = by
    const key = JSON.stringify([from, to])
    if (from === to || !known.has(from) || asked.has(key)) continue
    if (!reach.has(from, to)) asked.set(key, { from, to, by })
  }
  const all = [...asked.values()]
  const own = edgesOf(drawn)
  if (ranksOf(graphOf(drawn.nodes, [...own, ...all]))) return { implied: all, circular: [] }
  const implied: typeof all = []
  const circular: NodeReference[] = []
  for (const edge of all) {
    if (reach.has(edge.to, edge.from)) circular.push(edge.by)
    else {
      implied.push(edge)
      reach.add(edge.from, edge.to)
    }
  }
  return { implied, circular }
}

export const edgesOf = ({ successors }: Graph): Edge[] =>
  [...successors].flatMap(([from, those]) => those.map(to => ({ from, to })))
