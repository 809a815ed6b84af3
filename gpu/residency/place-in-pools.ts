import { cheapest, evictionCost } from './evict.ts'
import { byDevice, shareOn } from './occupancy.ts'
import type { DeviceCapacity, Occupant, PlacementDecision, PlacementRequest } from './place.ts'
import { type Machine, placeOnNodes } from './place-on-nodes.ts'
import { placeUnpaused } from './place-unpaused.ts'

type Load = Extract<PlacementDecision, { do: 'load' }>

/**
 * Decides where a model is loaded, in the pools that it may use. First it asks each pool in their order for free memory, then
 * each for idle engines that make room, and last each for busy ones. In a pool an engine gets devices of one machine, or of as
 * many as its model spans. Pure.
 */
export function placeInPools(
  request: PlacementRequest,
  loaded: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): PlacementDecision {
  const { elsewhere, ...first } = request
  const isLocal = first.pool === undefined
  if (request.kind === 'none' && !elsewhere) return placeUnpaused(request, loaded, capacities)
  const hasPools = capacities.some(({ pool }) => pool !== undefined)
  const here = hasPools ? capacities.filter(({ pool }) => pool === undefined) : capacities
  if (isLocal && !elsewhere) return placeUnpaused(first, loaded, here)
  const { modelId, mayEvict, avoid } = request
  const common = { modelId, mayEvict, ...(avoid && { avoid }) }
  const layouts: PlacementRequest[] = [
    first,
    ...(elsewhere ?? []).map(({ slots: _slots, ...one }) => ({ ...one, ...common })),
  ]
  const there = byDevice(loaded)
  const decide = (one: PlacementRequest): PlacementDecision =>
    one.pool === undefined
      ? placeUnpaused(one, loaded, here)
      : inPool(
          one,
          capacities.filter(({ pool }) => pool === one.pool),
          there,
        )
  const seen: PlacementDecision[] = []
  for (const allowed of mayEvict ? [false, true] : [false])
    for (const one of layouts) {
      const made = decide({ ...one, mayEvict: allowed })
      const decision = made.do === 'refuse' || one.pool === undefined ? made : inThe(one.pool, made)
      if (decision.do === 'load') return decision
      if (allowed === mayEvict) seen.push(decision)
    }
  const waits = seen.find(({ do: what }) => what === 'wait')
  if (waits) return waits
  const reasons = seen.flatMap(one => (one.do === 'refuse' ? [one.reason] : []))
  return { do: 'refuse', reason: [...new Set(reasons)].join(' ') }
}

/** Returns why a model fits nowhere even if every other engine is unloaded, as a sentence; null when it fits. */
export function unfitReason(
  placement: Omit<PlacementRequest, 'mayEvict'>,
  capacities: readonly DeviceCapacity[],
): string | null {
  const decision = placeInPools({ ...placement, mayEvict: true }, [], capacities)
  return decision.do === 'refuse' ? decision.reason : null
}

/** The decision with the name of its pool. */
function inThe(pool: string, decision: Exclude<PlacementDecision, { do: 'refuse' }>): PlacementDecision {
  return decision.do === 'load' ? { ...decision, pool } : { ...decision, where: { ...decision.where, pool } }
}

const waitFor = ({ modelId }: PlacementRequest, reason: string): PlacementDecision => ({
  do: 'wait',
  for: [],
  reserve: { modelId, engines: [], free: [] },
  where: { devices: [] },
  reason,
})

/** Places a model on one machine of a pool. `there`: the engines by device. */
function inPool(
  request: PlacementRequest,
  devices: readonly DeviceCapacity[],
  there: ReadonlyMap<string, readonly Occupant[]>,
): PlacementDecision {
  const name = `'${request.modelId}'`
  const impossible = request.impossible ?? request.loadFault?.text
  if (impossible !== undefined) return { do: 'refuse', reason: impossible }
  const unknown = devices.find(one => one.unknown !== undefined)
  if (unknown) return waitFor(request, `${name} waits for the pool '${request.pool}': ${unknown.unknown}`)
  if (request.isUnsized)
    return waitFor(request, `${name} waits for the pool '${request.pool}': its memory there is being estimated.`)
  const usable = devices.filter(({ kind, fault }) => kind === request.kind && fault === undefined)
  const kindName = request.kind === 'cpu' ? 'processor' : 'GPU'
  if (usable.length === 0)
    return {
      do: 'refuse',
      reason: `${name} needs a ${kindName}, and the pool '${request.pool}' has none${request.kind === 'cpu' ? ' for models' : ' now'}.`,
    }
  const limit = openLimit(request, usable, there)
  if (limit.isReached) return waitFor(request, `${name} waits: ${limit.isReached}`)
  const machines = (all: readonly DeviceCapacity[]) => [...Map.groupBy(all, ({ node = '' }) => node).values()]
  if (request.nodes !== undefined) {
    const nodes = machines(limit.allowed(usable)).map(all => nodeOf(all, there))
    const open = limit.isFull ? (request.mayEvict ? nodes.map(filled) : []) : nodes
    return placeOnNodes(request, byRank(open, request.bytes / request.nodes))
  }
  const nodes = machines(usable).map(all => nodeOf(limit.allowed(all), there))
  if (!request.mayEvict) return freeIn(request, limit.isFull ? [] : nodes)
  return replaceIn(request, limit.isFull ? nodes.map(filled) : nodes)
}

/** Places a model where engines must make room for it: the cheapest eviction among the machines that seem cheapest. */
function replaceIn(request: PlacementRequest, nodes: readonly Machine[]): PlacementDecision {
  const ranked = nodes
    .filter(({ devices }) => devices.length >= request.devices)
    .map(node => ({ node, rank: rankOf(node, request.bytes) }))
    .sort((a, b) => compareRanks(a.rank, b.rank))
  let waits: PlacementDecision | undefined
  let refusal: PlacementDecision | undefined
  for (let at = 0; at < ranked.length; at += maxCompared) {
    const compared = ranked.slice(at, at + maxCompared)
    const decisions = compared.map(({ node }) => placeUnpaused(request, node.occupants, node.devices))
    const loads = decisions.filter((one): one is Load => one.do === 'load')
    const byId = new Map(compared.flatMap(({ node }) => node.occupants.map(one => [one.engineId, one] as const)))
    const best = cheapest(loads, ({ evict }) => evictionCost(evict.map(id => byId.get(id)!)))
    if (best) return best
    waits ??= decisions.find(one => one.do === 'wait')
    refusal ??= decisions[0]
    // On those that follow more engines are busy.
    if (waits && compared.at(-1)!.rank.busy > 0) return waits
  }
  return waits ?? inWordsOf(request, refusal)
}

/** Machines whose evictions are compared exactly: each takes some 40 µs. */
const maxCompared = 8

/** The machines on which so many bytes cost least to free first, of equal ones those with least free memory. */
const byRank = (nodes: readonly Machine[], bytes: number): Machine[] =>
  nodes
    .map(node => ({ node, rank: rankOf(node, bytes) }))
    .sort((a, b) => compareRanks(a.rank, b.rank) || a.node.freeBytes - b.node.freeBytes)
    .map(({ node }) => node)

interface Rank {
  busy: number
  reloadMs: number
}
const compareRanks = (a: Rank, b: Rank): number =>
  a.busy === b.busy ? a.reloadMs - b.reloadMs : a.busy < b.busy ? -1 : 1

/** About what it costs to free so many bytes of a machine: busy engines, and milliseconds until the others are loaded again. */
function rankOf({ occupants, freeBytes }: Machine, bytes: number): Rank {
  const rank = { busy: 0, reloadMs: 0 }
  let missing = bytes - freeBytes
  const leave = (one: Occupant): void => {
    missing -= one.bytes
    if (one.busy) rank.busy++
    else rank.reloadMs += one.reloadMs
  }
  const able = occupants.filter(({ pinned }) => !pinned)
  for (const one of able.toSorted((a, b) => Number(a.busy) - Number(b.busy) || a.reloadMs - b.reloadMs))
    if (missing > 0) leave(one)
  return missing > 0 ? { busy: Infinity, reloadMs: 0 } : rank
}

/** A refusal names the pool, as the machines of a pool are not this server's own. */
function inWordsOf(request: PlacementRequest, refusal: PlacementDecision | undefined): PlacementDecision {
  const reason =
    refusal && 'reason' in refusal
      ? refusal.reason
      : `'${request.modelId}' needs ${request.devices} ${request.kind === 'cpu' ? 'processors' : 'GPUs'} of one machine, and none has as many.`
  return { do: 'refuse', reason: `In the pool '${request.pool}': ${reason}` }
}

/** Places a model in free memory: of the machines that have enough, on the one that has least. */
function freeIn(request: PlacementRequest, nodes: readonly Machine[]): PlacementDecision {
  const enough = nodes.filter(({ freeBytes }) => freeBytes >= request.bytes)
  for (const { occupants, devices } of enough.toSorted((a, b) => a.freeBytes - b.freeBytes)) {
    const decision = placeUnpaused(request, occupants, devices)
    if (decision.do === 'load') return decision
  }
  return waitFor(
    request,
    `There is no free memory for another engine of '${request.modelId}' in the pool '${request.pool}'.`,
  )
}

function nodeOf(devices: DeviceCapacity[], there: ReadonlyMap<string, readonly Occupant[]>): Machine {
  const occupants = new Set<Occupant>()
  let freeBytes = 0
  for (const { id, capacity } of devices) {
    let used = 0
    for (const one of there.get(id) ?? []) {
      occupants.add(one)
      used += shareOn(one, id)
    }
    freeBytes += Math.max(0, capacity - used)
  }
  return { devices, occupants: [...occupants], freeBytes }
}

/** The machine as if its engines used all of their devices, and nothing else were there: whoever comes replaces one. */
function filled({ devices, occupants }: Machine): Machine {
  const used = devices.filter(({ id }) => occupants.some(one => one.devices.includes(id)))
  const capacity = new Map(used.map(one => [one.id, one.capacity]))
  const count = new Map(used.map(({ id }) => [id, occupants.filter(one => one.devices.includes(id)).length]))
  const all = occupants.map(one => {
    const shares = one.devices.map(id => (capacity.get(id) ?? 0) / (count.get(id) ?? 1))
    return { ...one, shares, bytes: shares.reduce((sum, bytes) => sum + bytes, 0) }
  })
  return { devices: used, occupants: all, freeBytes: 0 }
}

/** What the limits of the pool and of the model leave of these devices. */
function openLimit(
  { limits, modelId, devices: cards, pool, kind }: PlacementRequest,
  devices: readonly DeviceCapacity[],
  there: ReadonlyMap<string, readonly Occupant[]>,
): { isReached?: string; isFull: boolean; allowed: (devices: DeviceCapacity[]) => DeviceCapacity[] } {
  if (!limits) return { isFull: false, allowed: all => all }
  const engines = new Set<Occupant>()
  const used = new Set<string>()
  let ownCards = 0
  for (const { id } of devices)
    for (const one of there.get(id) ?? []) {
      engines.add(one)
      used.add(id)
      if (one.modelId === modelId) ownCards++
    }
  const own = [...engines].filter(one => one.modelId === modelId).length
  const { maxEngines = Infinity, maxCards = Infinity, ownEngines = Infinity, ownCards: mostOwn = Infinity } = limits
  const open = { isFull: engines.size >= maxEngines, allowed: (all: DeviceCapacity[]) => all }
  if (own >= ownEngines)
    return { ...open, isReached: `it has as many engines in the pool '${pool}' as its 'max_engines' allows.` }
  if (kind !== 'gpu') return open
  if (ownCards + cards > mostOwn)
    return { ...open, isReached: `its engines have as many GPUs of the pool '${pool}' as its 'max_cards' allows.` }
  const more = Math.max(0, maxCards - used.size)
  if (more >= cards) return open
  const allowed = (all: DeviceCapacity[]) => {
    let left = more
    return all.filter(({ id }) => used.has(id) || left-- > 0)
  }
  return { ...open, allowed }
}
