import type { Dag } from '../dag/definition.ts'
import { referencesIn } from './bind.ts'
import { type Reach, reachOf } from './reach.ts'
import type { Reference } from './references.ts'

export interface Edge {
  from: string
  to: string
}

/** A reference of a node to another one, and its position. */
export interface NodeReference {
  node: string
  path: string
  reference: Reference
  /** The node that it names. */
  target: string
}

/**
 * The dependencies of the nodes: drawn edges and those that references imply. Without edges to missing nodes, edges of
 * a node to itself, and duplicates.
 */
export interface Graph {
  /** In the order of the definition. */
  nodes: readonly string[]
  successors: ReadonlyMap<string, readonly string[]>
  predecessors: ReadonlyMap<string, readonly string[]>
}

export function graphOf(nodes: readonly string[], edges: readonly Edge[]): Graph {
  const numbers = new Map<string, number>()
  const successors = new Map<string, string[]>()
  const predecessors = new Map<string, string[]>()
  for (const node of nodes) {
    numbers.set(node, numbers.size)
    successors.set(node, [])
    predecessors.set(node, [])
  }
  const seen = new Set<number>()
  for (const { from, to } of edges) {
    const first = numbers.get(from)
    const second = numbers.get(to)
    if (first === undefined || second === undefined || first === second) continue
    const edge = first * nodes.length + second
    if (seen.has(edge)) continue
    seen.add(edge)
    successors.get(from)!.push(to)
    predecessors.get(to)!.push(from)
  }
  return { nodes, successors, predecessors }
}

/** Every reference from one node to another, without those that cannot be parsed. */
export function nodeReferences({ nodes }: Dag): NodeReference[] {
  const found: NodeReference[] = []
  for (const [node, { inputs }] of Object.entries(nodes))
    for (const { path, reference } of referencesIn(inputs))
      if ('root' in reference && reference.root === 'nodes')
        found.push({ node, path, reference, target: String(reference.path[0]) })
  return found
}

const knownRanks = new WeakMap<Graph, string[][] | 'cyclic'>()

/**
 * The nodes in ranks: each node after all its predecessors, as early as possible. Undefined if the graph has a cycle.
 */
export function ranksOf(graph: Graph): readonly string[][] | undefined {
  const before = knownRanks.get(graph)
  if (before) return before === 'cyclic' ? undefined : before
  const ranks = findRanks(graph)
  knownRanks.set(graph, ranks ?? 'cyclic')
  return ranks
}

function findRanks({ nodes, successors, predecessors }: Graph): string[][] | undefined {
  const missing = new Map<string, number>()
  let rank: string[] = []
  for (const node of nodes) {
    const count = predecessors.get(node)!.length
    missing.set(node, count)
    if (count === 0) rank.push(node)
  }
  const ranks: string[][] = []
  let placed = 0
  while (rank.length > 0) {
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

/** One of the shortest cycles, with its first node repeated at the end; undefined if there is none. */
export function shortestCycle(graph: Graph): string[] | undefined {
  if (ranksOf(graph)) return undefined
  const { nodes } = graph
  const numbers = new Map(nodes.map((node, at) => [node, at]))
  const after = nodes.map(node => graph.successors.get(node)!.map(next => numbers.get(next)!))
  const before = new Int32Array(nodes.length)
  let best: number[] | undefined
  for (let start = 0; start < nodes.length; start++) {
    before.fill(-1)
    const maxLength: number = best ? best.length - 2 : nodes.length
    for (let ring = [start], length = 1; ring.length > 0 && before[start] === -1 && length <= maxLength; length++) {
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
 * Returns the edges that references imply beyond the drawn ones, each with its reference; the references that would
 * close a cycle and can never be resolved; and the graph with the implied edges.
 */
export function impliedEdges(
  drawn: Graph,
  references: readonly NodeReference[],
): { implied: (Edge & { by: NodeReference })[]; circular: NodeReference[]; whole: Graph } {
  const isDirect = directly(drawn)
  const candidates = new Map<string, Edge & { by: NodeReference }>()
  // Most references follow a drawn edge; the table of reachable nodes is then not needed.
  let reach: Reach | undefined
  for (const by of references) {
    const { target: from, node: to } = by
    if (from === to || !drawn.successors.has(from) || isDirect(from, to)) continue
    reach ??= reachOf(drawn)
    if (reach.has(from, to)) continue
    // Node names contain no line breaks.
    const key = `${from}\n${to}`
    if (!candidates.has(key)) candidates.set(key, { from, to, by })
  }
  if (!reach || candidates.size === 0) return { implied: [], circular: [], whole: drawn }
  const all = [...candidates.values()]
  const own = graphEdges(drawn)
  const whole = graphOf(drawn.nodes, [...own, ...all])
  if (ranksOf(whole)) return { implied: all, circular: [], whole }
  const implied: typeof all = []
  const circular: NodeReference[] = []
  for (const edge of all) {
    if (reach.has(edge.to, edge.from)) circular.push(edge.by)
    else {
      implied.push(edge)
      reach.add(edge.from, edge.to)
    }
  }
  return { implied, circular, whole: graphOf(drawn.nodes, [...own, ...implied]) }
}

/** Whether an edge goes from one node to another; indexed, because the same node is queried many times. */
function directly({ successors }: Graph): (from: string, to: string) => boolean {
  const indexed = new Map<string, Set<string>>()
  return (from, to) => {
    const targets = successors.get(from)!
    if (targets.length <= 16) return targets.includes(to)
    let known = indexed.get(from)
    if (!known) indexed.set(from, (known = new Set(targets)))
    return known.has(to)
  }
}

export const graphEdges = ({ successors }: Graph): Edge[] =>
  [...successors].flatMap(([from, targets]) => targets.map(to => ({ from, to })))
