import { cheapest, evictionCost } from './evict.ts'
import { decide } from './occupancy.ts'
import type { DeviceCapacity, Occupant, PlacementDecision, PlacementRequest } from './place.ts'
import { placeUnpaused } from './place-unpaused.ts'

/** A machine of a pool with what is on it. */
export interface Machine {
  devices: DeviceCapacity[]
  occupants: Occupant[]
  freeBytes: number
}

/** What one node would give to an engine that spans several. */
interface Part {
  devices: readonly string[]
  evict: Occupant[]
}

/** Nodes whose evictions are compared besides those that suffice: each takes some 40 µs. */
const comparedBesides = 8

/**
 * Places a model that spans nodes: on those with the cheapest evictions, of equal ones on those with least free memory. All of
 * them take their part at once, so it waits until enough have it. `machines`: those with the cheapest evictions first. Pure.
 */
export function placeOnNodes(request: PlacementRequest, machines: readonly Machine[]): PlacementDecision {
  const { modelId, nodes = 1, mayEvict } = request
  const each = request.devices / nodes
  const { nodes: _nodes, ...whole } = request
  const own: PlacementRequest = { ...whole, devices: each, bytes: request.bytes / nodes }
  const parts: Part[] = []
  let paused: Extract<PlacementDecision, { do: 'wait' }> | undefined
  let refusal: string | undefined
  for (const { devices, occupants, freeBytes } of machines) {
    if (parts.length >= nodes + comparedBesides) break
    if (!mayEvict && freeBytes < own.bytes) continue
    const decision = placeUnpaused(own, occupants, devices)
    if (decision.do === 'refuse') {
      if (devices.length >= each) refusal ??= decision.reason
    } else if (decision.do === 'load')
      parts.push({ devices: decision.devices, evict: withIds(occupants, decision.evict) })
    else if (decision.pause) paused ??= decision
    else if (mayEvict)
      parts.push({ devices: decision.where.devices, evict: withIds(occupants, decision.reserve.engines) })
  }
  if (parts.length >= nodes) {
    const { devices, evict } = cheapestParts(parts, nodes)
    const used = machines.flatMap(one => one.devices).filter(({ id }) => devices.includes(id))
    return decide(request, used, { devices: used.map(({ id }) => id) }, evict)
  }
  if (paused) return paused
  const cards = each === 1 ? '1 GPU' : `${each} GPUs`
  const needs = `'${modelId}' needs ${nodes} nodes with ${cards} each`
  const have = (count: number) => (count === 0 ? 'none has' : count === 1 ? '1 has' : `${count} have`)
  if (mayEvict) {
    const able = machines.filter(({ devices }) => devices.length >= each).length
    const reason = refusal ?? `${needs}; ${have(able)} as many.`
    return { do: 'refuse', reason: `In the pool '${request.pool}': ${reason}` }
  }
  return {
    do: 'wait',
    for: [],
    reserve: { modelId, engines: [], free: [] },
    where: { devices: [] },
    reason: `${needs} free in the pool '${request.pool}'; ${have(parts.length)} them.`,
  }
}

/** So many of the parts. An engine that spans nodes too is evicted from all of them at once. */
function cheapestParts(parts: readonly Part[], nodes: number): Part {
  const remaining = [...parts]
  const chosen: string[] = []
  const evicted = new Set<Occupant>()
  for (let count = 0; count < nodes; count++) {
    const best = cheapest(remaining, ({ evict }) => evictionCost(evict.filter(one => !evicted.has(one))))!
    remaining.splice(remaining.indexOf(best), 1)
    chosen.push(...best.devices)
    for (const one of best.evict) evicted.add(one)
  }
  return { devices: chosen, evict: [...evicted] }
}

const withIds = (occupants: readonly Occupant[], ids: readonly string[]): Occupant[] =>
  occupants.filter(({ engineId }) => ids.includes(engineId))
