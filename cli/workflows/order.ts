import type { Edge } from '../../core/workflows/graph.ts'

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
export const sourcesOf = (edges: readonly Edge[]): ReadonlyMap<string, readonly string[]> =>
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
