import type { Dag } from '../dag/definition.ts'
import { referencesIn } from './bind.ts'
import { type Reach, reachOf } from './reach.ts'
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
  const numbers = new Map(nodes.map((node, at) => [node, at]))
  const after = nodes.map((): string[] => [])
  const before = nodes.map((): string[] => [])
  const seen = new Set<number>()
  for (const { from, to } of edges) {
    const [first, second] = [numbers.get(from), numbers.get(to)]
    if (first === undefined || second === undefined || first === second) continue
    const edge = first * nodes.length + second
    if (seen.has(edge)) continue
    seen.add(edge)
    after[first]!.push(to)
    before[second]!.push(from)
  }
  const byName = (lists: readonly string[][]) => new Map(nodes.map((node, at) => [node, lists[at]!]))
  return { nodes, successors: byName(after), predecessors: byName(before) }
}

/** Every reference from one node to another; those that cannot be read are left out. */
export function nodeReferences({ nodes }: Dag): NodeReference[] {
  const found: NodeReference[] = []
  for (const [node, { inputs }] of Object.entries(nodes))
    for (const { path, reference } of referencesIn(inputs))
      if ('root' in reference && reference.root === 'nodes')
        found.push({ node, path, reference, target: String(reference.path[0]) })
  return found
}

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
  const own = edgesOf(drawn)
  // Names of nodes hold no line breaks.
  const direct = new Set(own.map(({ from, to }) => `${from}\n${to}`))
  const asked = new Map<string, Edge & { by: NodeReference }>()
  // Most references go along an edge, and then nobody has to know more.
  let reach: Reach | undefined
  for (const by of references) {
    const { target: from, node: to } = by
    const key = `${from}\n${to}`
    if (from === to || !known.has(from) || direct.has(key) || asked.has(key)) continue
    reach ??= reachOf(drawn)
    if (!reach.has(from, to)) asked.set(key, { from, to, by })
  }
  const all = [...asked.values()]
  if (!reach || ranksOf(graphOf(drawn.nodes, [...own, ...all]))) return { implied: all, circular: [] }
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
