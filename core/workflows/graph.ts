import type { Dag } from '../dag/definition.ts'
import { referencesOfNode } from './bind.ts'
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
  for (const [node, definition] of Object.entries(nodes))
    for (const { path, reference } of referencesOfNode(definition))
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

/**
 * Which nodes can be reached from which, over one edge or more, as a bit table: 128 kB and a few milliseconds for 1,000
 * nodes, where searching for every query takes seconds.
 */
export function reachOf({ nodes, successors }: Graph) {
  const numbers = new Map(nodes.map((node, at) => [node, at]))
  const after = nodes.map(node => successors.get(node)!.map(next => numbers.get(next)!))
  const words = Math.ceil(nodes.length / 32)
  const table = new Int32Array(nodes.length * words)
  const has = (from: number, to: number): boolean => ((table[from * words + (to >> 5)]! >> (to & 31)) & 1) === 1

  /** Adds a node and everything that it reaches to what `from` reaches. True if that added anything. */
  function join(from: number, to: number): boolean {
    const target = from * words
    const source = to * words
    let more = !has(from, to)
    table[target + (to >> 5)]! |= 1 << (to & 31)
    for (let word = 0; word < words; word++) {
      const before = table[target + word]!
      const now = before | table[source + word]!
      if (now === before) continue
      table[target + word] = now
      more = true
    }
    return more
  }

  // One pass from the ends to the beginnings is enough without cycles; each cycle takes a few more.
  const { order, isCircular } = endsFirst(after)
  for (let more = true; more; ) {
    more = false
    for (const node of order) for (const next of after[node]!) if (join(node, next)) more = isCircular
  }

  return {
    has: (from: string, to: string): boolean => has(numbers.get(from)!, numbers.get(to)!),
    /** Adds an edge. */
    add(from: string, to: string): void {
      const [first, second] = [numbers.get(from)!, numbers.get(to)!]
      if (has(first, second)) return
      join(first, second)
      for (let node = 0; node < nodes.length; node++) if (node !== first && has(node, first)) join(node, first)
    },
  }
}

export type Reach = ReturnType<typeof reachOf>

/**
 * The nodes in an order in which each comes after its successors, as far as cycles allow, and whether there are cycles.
 */
function endsFirst(after: readonly (readonly number[])[]): { order: number[]; isCircular: boolean } {
  const order: number[] = []
  const [fresh, open, done] = [0, 1, 2]
  const states = new Uint8Array(after.length)
  const path: { node: number; next: number }[] = []
  let isCircular = false
  for (let start = 0; start < after.length; start++) {
    if (states[start] !== fresh) continue
    states[start] = open
    path.push({ node: start, next: 0 })
    for (let step = path.at(-1); step; step = path.at(-1)) {
      const next = after[step.node]![step.next++]
      if (next === undefined) {
        states[step.node] = done
        order.push(step.node)
        path.pop()
      } else if (states[next] === fresh) {
        states[next] = open
        path.push({ node: next, next: 0 })
      } else if (states[next] === open) isCircular = true
    }
  }
  return { order, isCircular }
}
