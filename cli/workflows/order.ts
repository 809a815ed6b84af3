import type { Edge } from '../../core/workflows/graph.ts'

const sweeps = 4

/**
 * The items of each rank in an order in which few lines cross: each goes where the middle of its neighbours is, ranks
 * after ranks, downwards and upwards in turn. Items without neighbours stay where they are. Pure; equal places keep
 * their order, so the same graph is always drawn in the same way.
 */
export function ordered(ranks: readonly string[][], edges: readonly Edge[]): string[][] {
  const [above, below] = [sourcesOf(edges), targetsOf(edges)]
  let best = ranks.map(rank => [...rank])
  let fewest = crossings(best, below)
  const now = ranks.map(rank => [...rank])
  for (let sweep = 0; sweep < sweeps && fewest > 0; sweep++) {
    const down = sweep % 2 === 0
    const rest = down ? now.slice(1).keys() : [...now.keys()].slice(0, -1).reverse()
    for (const step of rest) {
      const at = down ? step + 1 : step
      const fixed = new Map(now[down ? at - 1 : at + 1]!.map((id, place) => [id, place]))
      now[at] = byMiddle(now[at]!, down ? above : below, fixed)
    }
    const count = crossings(now, below)
    if (count < fewest) {
      fewest = count
      best = now.map(rank => [...rank])
    }
  }
  return best
}

/** What leads to each, and to what each leads, in the order of the edges. */
export const sourcesOf = (edges: readonly Edge[]): ReadonlyMap<string, readonly string[]> =>
  new Map([...Map.groupBy(edges, ({ to }) => to)].map(([id, own]) => [id, own.map(({ from }) => from)]))
export const targetsOf = (edges: readonly Edge[]): ReadonlyMap<string, readonly string[]> =>
  new Map([...Map.groupBy(edges, ({ from }) => from)].map(([id, own]) => [id, own.map(({ to }) => to)]))

function byMiddle(
  rank: readonly string[],
  neighbours: ReadonlyMap<string, readonly string[]>,
  fixed: ReadonlyMap<string, number>,
): string[] {
  const middles = rank.map((id, at) => {
    const places = (neighbours.get(id) ?? []).flatMap(one => fixed.get(one) ?? [])
    return places.length === 0 ? at : places.reduce((sum, one) => sum + one, 0) / places.length
  })
  return rank
    .map((id, at) => ({ id, middle: middles[at]!, at }))
    .sort((a, b) => a.middle - b.middle || a.at - b.at)
    .map(({ id }) => id)
}

/** How many lines between neighbouring ranks cross. */
export function crossings(
  ranks: readonly (readonly string[])[],
  below: ReadonlyMap<string, readonly string[]>,
): number {
  let count = 0
  for (const [at, rank] of ranks.slice(0, -1).entries()) {
    const place = new Map(ranks[at + 1]!.map((id, index) => [id, index]))
    const ends = rank.map(id => (below.get(id) ?? []).flatMap(to => place.get(to) ?? []).sort((a, b) => a - b))
    count += sortedCounting(ends.flat())
  }
  return count
}

/** Sorts by merging, in place, and counts the pairs of which the larger stood first: thousands of lines are counted at once. */
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
