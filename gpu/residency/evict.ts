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
  /** Idle engines that running executions need next. */
  needed: number
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

/** Of a busy engine only its turn counts: it leaves because another model is due. */
const need = ({ busy, runsNext = 0 }: Occupant): number => Number(!busy && runsNext > 0)

/**
 * The order in which engines are evicted: idle ones first, those that no execution needs next, then the least recently
 * used.
 */
export const byLastUse = (a: Occupant, b: Occupant): number =>
  busyness(a) - busyness(b) || need(a) - need(b) || lastUseOf(a) - lastUseOf(b)

export const evictionCost = (occupants: readonly Occupant[]): Cost => ({
  busy: occupants.reduce((sum, one) => sum + busyness(one), 0),
  reloadMs: occupants.reduce((sum, one) => sum + one.reloadMs, 0),
  needed: occupants.reduce((sum, one) => sum + need(one), 0),
  lastUsedAt: occupants.reduce((latest, one) => Math.max(latest, lastUseOf(one)), Number.NEGATIVE_INFINITY),
})

/**
 * Returns the option with the lowest cost: fewest busy engines, then the shortest time to load them again, then fewest that
 * executions need next, then least recently used, then the first.
 */
export function cheapest<Option>(options: readonly Option[], cost: (option: Option) => Cost): Option | undefined {
  const costs = options.map(cost)
  let busy = Number.POSITIVE_INFINITY
  let shortest = Number.POSITIVE_INFINITY
  for (const one of costs)
    if (one.busy < busy) [busy, shortest] = [one.busy, one.reloadMs]
    else if (one.busy === busy && one.reloadMs < shortest) shortest = one.reloadMs
  const longest = shortest * equal.factor + equal.ms
  let best: number | undefined
  for (const [at, one] of costs.entries()) {
    if (one.busy !== busy || one.reloadMs > longest) continue
    const than = best === undefined ? undefined : costs[best]!
    if (than === undefined || isCheaper(one, than)) best = at
  }
  return best === undefined ? undefined : options[best]
}

const isCheaper = (a: Cost, b: Cost): boolean =>
  a.needed !== b.needed
    ? a.needed < b.needed
    : a.lastUsedAt < b.lastUsedAt || (a.lastUsedAt === b.lastUsedAt && a.reloadMs < b.reloadMs)

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
  const first = minimalChoice(ordered.slice(0, count), suffices).map(({ occupant }) => occupant)
  const compared = ordered.slice(0, maxCompared)
  const options = [{ set: 0, ...evictionCost(first) }, ...minimalSubsets(compared, bytes)]
  const { set } = cheapest(options, cost => cost)!
  return set === 0 ? first : compared.filter((_, at) => (set >> at) & 1).map(({ occupant }) => occupant)
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

/** Costs of the subsets whose members are bits, by the costs of those with one member less. */
const sums = new Float64Array(1 << maxCompared)
const least = new Float64Array(1 << maxCompared).fill(Number.POSITIVE_INFINITY)
const busyMembers = new Float64Array(1 << maxCompared)
const reloads = new Float64Array(1 << maxCompared)
const needs = new Float64Array(1 << maxCompared)
const lastUses = new Float64Array(1 << maxCompared).fill(Number.NEGATIVE_INFINITY)

/** The subsets that free enough, and no longer do without the member that frees least, each as bits. */
function minimalSubsets(candidates: readonly EvictionCandidate[], bytes: number): (Cost & { set: number })[] {
  const found: (Cost & { set: number })[] = []
  for (let set = 1; set < 1 << candidates.length; set++) {
    const rest = set & (set - 1)
    const { frees, occupant } = candidates[31 - Math.clz32(set ^ rest)]!
    sums[set] = sums[rest]! + frees
    least[set] = Math.min(least[rest]!, frees)
    busyMembers[set] = busyMembers[rest]! + Number(occupant.busy)
    reloads[set] = reloads[rest]! + occupant.reloadMs
    needs[set] = needs[rest]! + need(occupant)
    lastUses[set] = Math.max(lastUses[rest]!, lastUseOf(occupant))
    if (sums[set]! >= bytes && sums[set]! - least[set]! < bytes)
      found.push({
        set,
        busy: busyMembers[set]!,
        reloadMs: reloads[set]!,
        needed: needs[set]!,
        lastUsedAt: lastUses[set]!,
      })
  }
  return found
}
