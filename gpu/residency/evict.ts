import type { Occupant } from './place.ts'

/** An engine that may be evicted, and the bytes that evicting it frees on one device. */
export interface EvictionCandidate {
  occupant: Occupant
  frees: number
}

interface Cost {
  /** Of busy engines; one that its model can do without counts half. */
  busy: number
  /** Milliseconds until all of them would be loaded again. */
  reloadMs: number
  /** Last use of the most recently used of them; of a busy one, the start of its turn. */
  lastUsedAt: number
}

/** Sets of engines count as equal whose loads take up to this much longer: measured times vary as much. */
const equal = { factor: 1.25, ms: 1_000 }
/** Up to this many engines, every subset is compared: 256 subsets, 0.1 ms. */
const maxCompared = 8

/** A busy engine is ranked by its turn: ranked by its requests, two would be drained in alternation and none end. */
const lastUseOf = (one: Occupant): number => (one.busy ? (one.turnSince ?? Number.POSITIVE_INFINITY) : one.lastUsedAt)

/** A busy engine that its model can do without is between an idle one and one that is needed. */
const busyness = ({ busy, surplus }: Occupant): number => (busy ? (surplus ? 0.5 : 1) : 0)

/** The order in which engines are evicted: idle ones first, then the least recently used. */
export const byLastUse = (a: Occupant, b: Occupant): number => busyness(a) - busyness(b) || lastUseOf(a) - lastUseOf(b)

export const evictionCost = (occupants: readonly Occupant[]): Cost => ({
  busy: occupants.reduce((sum, one) => sum + busyness(one), 0),
  reloadMs: occupants.reduce((sum, one) => sum + one.reloadMs, 0),
  lastUsedAt: occupants.reduce((latest, one) => Math.max(latest, lastUseOf(one)), Number.NEGATIVE_INFINITY),
})

/**
 * Returns the option with the lowest cost: fewest busy engines, then the shortest time to load them again, then least
 * recently used, then the first.
 */
export function cheapest<Option>(options: readonly Option[], cost: (option: Option) => Cost): Option | undefined {
  const costs = options.map(option => ({ option, ...cost(option) }))
  const busy = Math.min(...costs.map(one => one.busy))
  const leastBusy = costs.filter(one => one.busy === busy)
  const longest = Math.min(...leastBusy.map(one => one.reloadMs)) * equal.factor + equal.ms
  return leastBusy
    .filter(one => one.reloadMs <= longest)
    .reduce<(typeof costs)[number] | undefined>(
      (best, one) =>
        best &&
        (best.lastUsedAt < one.lastUsedAt || (best.lastUsedAt === one.lastUsedAt && best.reloadMs <= one.reloadMs))
          ? best
          : one,
      undefined,
    )?.option
}

/**
 * Chooses the engines to evict so that at least `bytes` become free: the cheapest set (see `cheapest`) without
 * unnecessary members, least recently used first. Returns undefined when all of them together do not suffice. Up to
 * `maxCompared` candidates are compared exactly; of more, only the idle and least recently used ones.
 */
export function evictionFor(bytes: number, candidates: readonly EvictionCandidate[]): Occupant[] | undefined {
  if (bytes <= 0) return []
  const ordered = candidates.toSorted((a, b) => byLastUse(a.occupant, b.occupant))
  const suffices = (chosen: readonly EvictionCandidate[]) => chosen.reduce((sum, { frees }) => sum + frees, 0) >= bytes
  if (!suffices(ordered)) return undefined
  let count = 1
  while (!suffices(ordered.slice(0, count))) count++
  const options = [
    minimalChoice(ordered.slice(0, count), suffices),
    ...minimalSubsets(ordered.slice(0, maxCompared), bytes),
  ]
  return cheapest(options, chosen => evictionCost(chosen.map(({ occupant }) => occupant)))!.map(
    ({ occupant }) => occupant,
  )
}

/** Removes unnecessary members, from the end: busy and most recently used engines come last and are removed first. */
export function minimalChoice<One>(chosen: readonly One[], suffices: (chosen: readonly One[]) => boolean): One[] {
  let rest = [...chosen]
  for (const one of chosen.toReversed()) {
    const without = rest.filter(other => other !== one)
    if (suffices(without)) rest = without
  }
  return rest
}

/** The subsets that free enough, and no longer do without the member that frees least. */
function minimalSubsets(candidates: readonly EvictionCandidate[], bytes: number): EvictionCandidate[][] {
  const sums = new Float64Array(1 << candidates.length)
  const least = new Float64Array(sums.length).fill(Number.POSITIVE_INFINITY)
  const found: EvictionCandidate[][] = []
  for (let set = 1; set < sums.length; set++) {
    const rest = set & (set - 1)
    const { frees } = candidates[31 - Math.clz32(set ^ rest)]!
    sums[set] = sums[rest]! + frees
    least[set] = Math.min(least[rest]!, frees)
    if (sums[set]! >= bytes && sums[set]! - least[set]! < bytes)
      found.push(candidates.filter((_, at) => (set >> at) & 1))
  }
  return found
}
