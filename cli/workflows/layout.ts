import { type Edge, type Graph, ranksOf } from '../../core/workflows/graph.ts'

/** The box of a node, or of several nodes that share one because not all fit. Columns and lines count from 0. */
interface NodeBox {
  id: string
  /** The nodes in the box: one, or several of which only the number is shown. */
  nodes: readonly string[]
  left: number
  top: number
  width: number
  height: number
}

/** A line from the bottom of an item to the top of an item in the next rank. */
interface Connector {
  from: { x: number; y: number }
  to: { x: number; y: number }
  /** Ids of the items at both ends; a passage is an item too. */
  source: string
  target: string
}

export interface GraphLayout {
  width: number
  height: number
  boxes: NodeBox[]
  links: Connector[]
  /** Lines that pass a rank on the way from an earlier rank to a later one. */
  passages: { x: number; top: number; bottom: number }[]
  /** The space between two ranks with its lines. */
  channels: { top: number; height: number; bundles: EdgeBundle[] }[]
}

/** Lines that are drawn as one: all sources lead to all targets. Columns. */
interface EdgeBundle {
  sources: number[]
  targets: number[]
  /** The line of the channel on which it runs horizontally; 0 if it runs straight down. */
  track: number
}

interface LayoutOptions {
  /** Returns the columns of the text in the box of these nodes. */
  textWidth: (nodes: readonly string[]) => number
  /** Lines of text in a box. */
  lines: number
  /** Available columns. */
  width: number
}

/** Columns between two boxes of a rank. */
const gap = 2
/** Columns of the border and a space on each side. */
const frame = 4

interface Item {
  id: string
  /** Empty for a passage. */
  nodes: readonly string[]
  width: number
}

const isPassage = ({ nodes }: Item): boolean => nodes.length === 0

/**
 * Arranges the nodes of a graph in ranks from top to bottom, each node below its predecessors, and reduces line
 * crossings. Nodes that do not fit in their rank share one box. Pure. Undefined for a graph with a cycle.
 */
export function layOut(graph: Graph, measures: LayoutOptions): GraphLayout | undefined {
  const ranks = ranksOf(graph)
  if (!ranks) return undefined
  const { items, edges } = folded(ranks, graph, measures)
  const sorted = ordered(
    items.map(rank => rank.map(({ id }) => id)),
    edges,
  )
  const byId = new Map(items.flat().map(item => [item.id, item]))
  const rows = sorted.map(rank => rank.map(id => byId.get(id)!))
  const centres = placed(rows, edges, measures.width)
  return assembled(rows, edges, centres, measures.lines + 2)
}

/** Returns ranks whose items fit the width, with passages for edges that skip ranks. */
function folded(
  ranks: readonly string[][],
  { successors }: Graph,
  { textWidth, width }: LayoutOptions,
): { items: Item[][]; edges: Edge[] } {
  const rankOf = new Map<string, number>()
  const boxOf = new Map<string, string>()
  const wide = (nodes: readonly string[]) => {
    const text = textWidth(nodes) + frame
    // Odd, so that every box has a middle and straight lines stay straight.
    return text + 1 - (text % 2)
  }
  const items = ranks.map((rank, at): Item[] => {
    const each = rank.map(id => ({ id, nodes: [id], width: wide([id]) }))
    let room = each.reduce((sum, one) => sum + one.width + gap, -gap)
    let count = each.length
    while (count > 0 && room + (count < rank.length ? gap + wide(rank.slice(count)) : 0) > width)
      room -= each[--count]!.width + gap
    // A single node is cut instead of being counted.
    if (rank.length === 1) count = 1
    const [kept, rest] = [each.slice(0, count), rank.slice(count)]
    const more = rest.length > 0 ? [{ id: `\u0000${at}`, nodes: rest, width: wide(rest) }] : []
    const all = [...kept, ...more]
    for (const item of all) for (const node of item.nodes) boxOf.set(node, item.id)
    for (const { id } of all) rankOf.set(id, at)
    return all
  })
  const edges: Edge[] = []
  const joined = new Map<string, Set<string>>()
  const join = (from: string, to: string) => {
    const own = joined.get(from) ?? new Set()
    if (own.has(to)) return
    joined.set(from, own.add(to))
    edges.push({ from, to })
  }
  for (const [node, others] of successors)
    for (const other of others) {
      const [from, to] = [boxOf.get(node)!, boxOf.get(other)!]
      let last = from
      // Lines from one box share their passages.
      for (let rank = rankOf.get(from)! + 1; rank < rankOf.get(to)!; rank++) {
        const id = `\u0001${rank} ${from}`
        if (!rankOf.has(id)) {
          rankOf.set(id, rank)
          items[rank]!.push({ id, nodes: [], width: 1 })
        }
        join(last, id)
        last = id
      }
      join(last, to)
    }
  return { items, edges }
}

/** Returns the center column of each item: below the center of its predecessors, as far as they fit. */
function placed(rows: readonly Item[][], edges: readonly Edge[], width: number): Map<string, number> {
  const before = sourcesOf(edges)
  const centres = new Map<string, number>()
  const middle = Math.floor((Math.max(...rows.map(widthOf), 1) - 1) / 2)
  for (const row of rows) {
    const desired = row.map(({ id }) => {
      const above = (before.get(id) ?? []).map(one => centres.get(one)!)
      return above.length === 0 ? middle : above.reduce((sum, one) => sum + one, 0) / above.length
    })
    const lefts: number[] = []
    for (const [at, item] of row.entries()) {
      const left = Math.round(desired[at]! - (item.width - 1) / 2)
      lefts.push(at === 0 ? left : Math.max(left, lefts[at - 1]! + row[at - 1]!.width + gap))
    }
    // Overlaps were resolved to the right, so the row moves back to the left by the average shift.
    const pushed = row.map((item, at) => lefts[at]! + (item.width - 1) / 2 - desired[at]!)
    const shift = Math.round(pushed.reduce((sum, one) => sum + one, 0) / Math.max(1, row.length))
    for (let at = row.length - 1, limit = width; at >= 0; limit = lefts[at]! - gap, at--)
      lefts[at] = Math.min(lefts[at]! - shift, limit - row[at]!.width)
    for (let at = 0, limit = 0; at < row.length; limit = lefts[at]! + row[at]!.width + gap, at++)
      lefts[at] = Math.max(lefts[at]!, limit)
    for (const [at, item] of row.entries()) centres.set(item.id, lefts[at]! + (item.width - 1) / 2)
  }
  const left = Math.min(...rows.flat().map(({ id, width: own }) => centres.get(id)! - (own - 1) / 2), Infinity)
  for (const [id, centre] of centres) centres.set(id, centre - left)
  return centres
}

const widthOf = (row: readonly Item[]): number => row.reduce((sum, item) => sum + item.width + gap, -gap)

function assembled(
  rows: readonly Item[][],
  edges: readonly Edge[],
  centres: ReadonlyMap<string, number>,
  boxHeight: number,
): GraphLayout {
  const after = successorsById(edges)
  const layout: GraphLayout = { width: 0, height: 0, boxes: [], links: [], passages: [], channels: [] }
  let top = 0
  for (const [at, row] of rows.entries()) {
    for (const item of row) {
      const x = centres.get(item.id)!
      const left = x - (item.width - 1) / 2
      layout.width = Math.max(layout.width, left + item.width)
      if (isPassage(item)) layout.passages.push({ x, top, bottom: top + boxHeight - 1 })
      else layout.boxes.push({ id: item.id, nodes: item.nodes, left, top, width: item.width, height: boxHeight })
    }
    const bottom = top + boxHeight
    const bundles = bundlesOf(row, rows[at + 1] ?? [], after, centres)
    const height = bundles.length === 0 ? 0 : Math.max(1, ...bundles.map(({ track }) => track + 1))
    if (at < rows.length - 1) layout.channels.push({ top: bottom, height, bundles })
    for (const { id } of row)
      for (const to of after.get(id) ?? [])
        layout.links.push({
          from: { x: centres.get(id)!, y: bottom - 1 },
          to: { x: centres.get(to)!, y: bottom + height },
          source: id,
          target: to,
        })
    layout.height = bottom
    top = bottom + height
  }
  return layout
}

/**
 * Groups lines to bundles: items with the same targets share one. Bundles that would overlap get different tracks, and
 * bundles to one box reach it in different columns, so that they can be distinguished.
 */
function bundlesOf(
  row: readonly Item[],
  below: readonly Item[],
  after: ReadonlyMap<string, readonly string[]>,
  centres: ReadonlyMap<string, number>,
): EdgeBundle[] {
  const bundles = new Map<string, EdgeBundle>()
  const bundlesTo = new Map<string, EdgeBundle[]>(below.map(({ id }) => [id, []]))
  for (const { id } of row) {
    const ids = [...new Set(after.get(id) ?? [])].sort((a, b) => centres.get(a)! - centres.get(b)!)
    if (ids.length === 0) continue
    const key = JSON.stringify(ids)
    const bundle = bundles.get(key)
    if (bundle) {
      bundle.sources.push(centres.get(id)!)
      continue
    }
    const created: EdgeBundle = { sources: [centres.get(id)!], targets: [], track: 0 }
    bundles.set(key, created)
    for (const to of ids) bundlesTo.get(to)!.push(created)
  }
  const middleOf = ({ sources }: EdgeBundle) => sources.reduce((sum, x) => sum + x, 0) / sources.length
  for (const { id, width } of below) {
    const centre = centres.get(id)!
    const incoming = bundlesTo.get(id)!.sort((a, b) => middleOf(a) - middleOf(b))
    const straight = incoming.findIndex(bundle => bundle.sources.length === 1 && bundle.sources[0] === centre)
    const anchor = straight < 0 ? (incoming.length - 1) / 2 : straight
    const maxOffset = Math.max(0, (width - 3) / 2)
    for (const [at, bundle] of incoming.entries())
      bundle.targets.push(centre + Math.max(-maxOffset, Math.min(maxOffset, (at - anchor) * 2)))
  }
  return tracked([...bundles.values()])
}

const isStraight = ({ sources, targets }: EdgeBundle): boolean =>
  sources.length === 1 && targets.length === 1 && sources[0] === targets[0]
const reach = ({ sources, targets }: EdgeBundle): [number, number] => [
  Math.min(...sources, ...targets),
  Math.max(...sources, ...targets),
]

/**
 * Assigns tracks. If a bundle has a source in a column in which another has a target, its track must be above the
 * other's. If two bundles require that of each other, the first takes precedence, and their lines touch.
 */
function tracked(bundles: EdgeBundle[]): EdgeBundle[] {
  const open = new Set(bundles.filter(bundle => !isStraight(bundle)))
  const bySource = Map.groupBy(
    [...open].flatMap(bundle => bundle.sources.map(x => ({ x, bundle }))),
    ({ x }) => x,
  )
  const above = new Map(
    [...open].map(bundle => {
      const others = bundle.targets.flatMap(x => bySource.get(x) ?? []).map(other => other.bundle)
      return [bundle, others.filter(other => other !== bundle)]
    }),
  )
  const mustWait = (bundle: EdgeBundle) => above.get(bundle)!.some(other => open.has(other))
  const taken: { from: number; to: number }[][] = []
  while (open.size > 0) {
    const bundle = [...open].find(one => !mustWait(one)) ?? [...open][0]!
    open.delete(bundle)
    const [from, to] = reach(bundle)
    const turned = above.get(bundle)!.filter(other => !open.has(other))
    let track = Math.max(0, ...turned.map(other => other.track + 1))
    while (taken[track]?.some(one => one.from <= to + 1 && from <= one.to + 1)) track++
    bundle.track = track
    ;(taken[track] ??= []).push({ from, to })
  }
  return bundles
}

const sweeps = 4

/**
 * Orders the items of each rank so that few lines cross: sorts each rank by the mean position of its neighbors,
 * alternately downwards and upwards. Items without neighbors keep their position. Pure and stable, so the same graph
 * always has the same drawing.
 */
export function ordered(ranks: readonly string[][], edges: readonly Edge[]): string[][] {
  const [above, below] = [sourcesOf(edges), successorsById(edges)]
  let best = ranks.map(rank => [...rank])
  let minCrossings = crossings(best, below)
  const now = ranks.map(rank => [...rank])
  for (let sweep = 0; sweep < sweeps && minCrossings > 0; sweep++) {
    const down = sweep % 2 === 0
    const rest = down ? now.slice(1).keys() : [...now.keys()].slice(0, -1).reverse()
    for (const step of rest) {
      const at = down ? step + 1 : step
      const fixed = new Map(now[down ? at - 1 : at + 1]!.map((id, position) => [id, position]))
      now[at] = byMiddle(now[at]!, down ? above : below, fixed)
    }
    const count = crossings(now, below)
    if (count < minCrossings) {
      minCrossings = count
      best = now.map(rank => [...rank])
    }
  }
  return best
}

/** Sources by target, and targets by source, in the order of the edges. */
const sourcesOf = (edges: readonly Edge[]): ReadonlyMap<string, readonly string[]> =>
  new Map([...Map.groupBy(edges, ({ to }) => to)].map(([id, own]) => [id, own.map(({ from }) => from)]))
export const successorsById = (edges: readonly Edge[]): ReadonlyMap<string, readonly string[]> =>
  new Map([...Map.groupBy(edges, ({ from }) => from)].map(([id, own]) => [id, own.map(({ to }) => to)]))

function byMiddle(
  rank: readonly string[],
  neighbours: ReadonlyMap<string, readonly string[]>,
  fixed: ReadonlyMap<string, number>,
): string[] {
  const middles = rank.map((id, at) => {
    const positions = (neighbours.get(id) ?? []).flatMap(one => fixed.get(one) ?? [])
    return positions.length === 0 ? at : positions.reduce((sum, one) => sum + one, 0) / positions.length
  })
  return rank
    .map((id, at) => ({ id, middle: middles[at]!, at }))
    .sort((a, b) => a.middle - b.middle || a.at - b.at)
    .map(({ id }) => id)
}

/** Counts the crossings of lines between adjacent ranks. */
export function crossings(
  ranks: readonly (readonly string[])[],
  below: ReadonlyMap<string, readonly string[]>,
): number {
  let count = 0
  for (const [at, rank] of ranks.slice(0, -1).entries()) {
    const positions = new Map(ranks[at + 1]!.map((id, index) => [id, index]))
    const ends = rank.map(id => (below.get(id) ?? []).flatMap(to => positions.get(to) ?? []).sort((a, b) => a - b))
    count += sortedCounting(ends.flat())
  }
  return count
}

/** Merge-sorts in place and counts the inversions, in O(n log n) because graphs can have thousands of lines. */
function sortedCounting(ends: number[]): number {
  if (ends.length < 2) return 0
  const half = ends.length >> 1
  const [left, right] = [ends.slice(0, half), ends.slice(half)]
  let count = sortedCounting(left) + sortedCounting(right)
  for (let at = 0, first = 0, second = 0; at < ends.length; at++)
    if (second === right.length || (first < left.length && left[first]! <= right[second]!)) ends[at] = left[first++]!
    else {
      ends[at] = right[second++]!
      count += left.length - first
    }
  return count
}
