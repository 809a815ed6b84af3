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

/** Every reference from one node to another; those that cannot be read are left out. */
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
 * The nodes in ranks: each after all that must be done before it, and as early as that allows. Undefined when the graph
 * has a cycle.
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
 * The edges that references imply beyond those that are drawn, each with its reference, the references that would
 * close a circle and so can never be had, and the graph with what is implied.
 */
export function impliedEdges(
  drawn: Graph,
  references: readonly NodeReference[],
): { implied: (Edge & { by: NodeReference })[]; circular: NodeReference[]; whole: Graph } {
  const isDirect = directly(drawn)
  const asked = new Map<string, Edge & { by: NodeReference }>()
  // Most references go along an edge, and then nobody has to know more.
  let reach: Reach | undefined
  for (const by of references) {
    const { target: from, node: to } = by
    if (from === to || !drawn.successors.has(from) || isDirect(from, to)) continue
    reach ??= reachOf(drawn)
    if (reach.has(from, to)) continue
    // Names of nodes hold no line breaks.
    const key = `${from}\n${to}`
    if (!asked.has(key)) asked.set(key, { from, to, by })
  }
  if (!reach || asked.size === 0) return { implied: [], circular: [], whole: drawn }
  const all = [...asked.values()]
  const own = edgesOf(drawn)
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

/** Whether an edge goes from one node to another; asked of the same node again and again, it must not search each time. */
function directly({ successors }: Graph): (from: string, to: string) => boolean {
  const many = new Map<string, Set<string>>()
  return (from, to) => {
    const those = successors.get(from)!
    if (those.length <= 16) return those.includes(to)
    let known = many.get(from)
    if (!known) many.set(from, (known = new Set(those)))
    return known.has(to)
  }
}

export const edgesOf = ({ successors }: Graph): Edge[] =>
  [...successors].flatMap(([from, those]) => those.map(to => ({ from, to })))
