import type { BytesFrom } from '../../core/models/model-plan.ts'
import { formatBytes } from '../engines/gguf/sizing.ts'
import type { MemoryPlan } from '../estimate/estimate.ts'
import type { SourceFault } from '../estimate/source-check.ts'
import { cheapest, evictionCost, evictionFor, minimalChoice } from './evict.ts'

export interface DeviceCapacity {
  id: string
  kind: 'nvidia' | 'cpu'
  /** Bytes for models: the bookable part of the memory minus what other programs use. */
  capacity: number
}

/** An engine that uses or will use memory, or free memory that is reserved. Engines that are stopping are left out. */
export interface Occupant {
  engineId: string
  modelId: string
  devices: readonly string[]
  /** Total, spread evenly over its devices. */
  bytes: number
  /** Runs requests, is loading, or is reserved for a model that is placed first: not evicted for another model now. */
  busy: boolean
  /** Kept loaded by its configuration. */
  pinned: boolean
  /** When its turn began: it was ready. Null while it loads or is reserved. */
  turnSince: number | null
  /** Until when it at most serves what waited for it at the start of its turn. Null when it has served that. */
  turnUntil: number | null
  /** Times are milliseconds on a clock that all occupants share. */
  lastUsedAt: number
  /** Average milliseconds of its model's requests; null before the first completed one. */
  runMs: number | null
  /** Milliseconds that its model is expected to take until it is loaded again. */
  reloadMs: number
}

export interface PlacementRequest {
  modelId: string
  bytes: number
  /** What its engine is told to use; absent where that is `bytes`, which is more if engines of it have used more. */
  estimate?: number
  bytesFrom?: BytesFrom | undefined
  /** How many devices of `kind` it is spread over. `none`: infer does not start the engine. */
  devices: number
  kind: 'nvidia' | 'cpu' | 'none'
  /** Ids of the devices to which it is bound; absent where it may use any. */
  only?: readonly string[]
  /** How its engine is to use these bytes. */
  plan?: MemoryPlan
  /** Why it cannot run on this machine at all, as a sentence. */
  impossible?: string
  /** Why its engine can never load its files, for callers. */
  loadFault?: SourceFault
  /** False for an additional replica: it uses free memory only. */
  mayEvict: boolean
  /** Devices that are used only where the others are in use: its last engine failed there. */
  avoid?: readonly string[]
}

export type PlacementDecision =
  | { do: 'load'; devices: readonly string[]; evict: readonly string[] }
  /** `reserve`: what it will use. `for`: the busy engines among those that will be evicted. */
  | { do: 'wait'; for: readonly string[]; reserve: Reservation; reason: string }
  | { do: 'refuse'; reason: string }

/** What a model will use that waits for memory: the memory of `engines`, and on some devices free memory besides. */
export interface Reservation {
  modelId: string
  engines: readonly string[]
  free: readonly { device: string; bytes: number }[]
}

interface Option {
  device: DeviceCapacity
  /** Free bytes that remain on the device after the evictions and the load. */
  spare: number
  evict: Occupant[]
}

/**
 * Decides where a model is loaded. Pure: reads no clock, starts nothing, logs nothing, because it is called for every
 * waiting model on every change. Idle engines are evicted, those that are loaded again soonest; busy ones are waited for,
 * never killed; pinned ones stay. A model on several devices takes an equal share of each.
 */
export function place(
  request: PlacementRequest,
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): PlacementDecision {
  const impossible = request.impossible ?? request.loadFault?.text
  if (impossible !== undefined) return { do: 'refuse', reason: impossible }
  if (request.kind === 'none') return { do: 'load', devices: [], evict: [] }
  const { only } = request
  const candidates = capacities.filter(device => device.kind === request.kind && (only?.includes(device.id) ?? true))
  const name = `'${request.modelId}'`
  const [one, several] = request.kind === 'cpu' ? ['processor', 'processor'] : ['GPU', 'GPUs']
  if (candidates.length === 0)
    return { do: 'refuse', reason: `${name} needs a ${one}, and this server has found none.` }
  if (candidates.length < request.devices)
    return {
      do: 'refuse',
      reason: `${name} needs ${request.devices} ${several}; this server has ${candidates.length}.`,
    }
  const share = request.bytes / request.devices
  const each = request.devices > 1 ? ` on each of ${request.devices} ${several}` : ''
  const needs = `${name} needs ${formatBytes(share)} of memory${each}`
  const largeEnough = candidates.filter(device => device.capacity >= share)
  if (largeEnough.length < request.devices) {
    const largest = formatBytes(Math.max(...candidates.map(device => device.capacity)))
    return { do: 'refuse', reason: `${needs}; the most that one ${one} here has is ${largest}.` }
  }

  const there = byDevice(occupants)
  const options = largeEnough.flatMap(
    device => optionOn(device, share, there.get(device.id) ?? [], request.mayEvict) ?? [],
  )
  if (options.length < request.devices) {
    if (!request.mayEvict)
      return {
        do: 'wait',
        for: [],
        reserve: { modelId: request.modelId, engines: [], free: [] },
        reason: `There is no free memory for another engine of ${name}.`,
      }
    const pinned = occupants.filter(other => other.pinned)
    const kept = names(pinned.filter(other => largeEnough.some(device => other.devices.includes(device.id))))
    const free = formatBytes(Math.max(0, ...largeEnough.map(device => freeOn(device, pinned))))
    return {
      do: 'refuse',
      reason: `${needs}; beside ${kept}, which is kept loaded (replicas.min), one ${one} here has at most ${free}.`,
    }
  }
  const usable = options.filter(
    ({ device, evict }) => !request.avoid?.includes(device.id) && !evict.some(other => other.busy),
  )
  const chosen = choose(usable.length < request.devices ? options : usable, request.devices)
  const evicted = evictedFrom(chosen, share, occupants)
  const engines = evicted.map(other => other.engineId)
  const busy = evicted.filter(other => other.busy)
  if (busy.length > 0)
    return {
      do: 'wait',
      for: busy.map(other => other.engineId),
      reserve: {
        modelId: request.modelId,
        engines,
        free: chosen.flatMap(({ device }) => {
          const bytes = share - bytesOn(device, evicted)
          return bytes > 0 ? [{ device: device.id, bytes }] : []
        }),
      },
      reason: `${name} waits for the memory of ${names(busy)}.`,
    }
  return { do: 'load', devices: chosen.map(option => option.device.id), evict: engines }
}

/** Returns why a model fits nowhere even if every other engine is unloaded, as a sentence; null when it fits. */
export function unfitReason(
  placement: Omit<PlacementRequest, 'mayEvict'>,
  capacities: readonly DeviceCapacity[],
): string | null {
  const decision = place({ ...placement, mayEvict: true }, [], capacities)
  return decision.do === 'refuse' ? decision.reason : null
}

/** Returns the bytes that are free on all of these devices, when an equal share of each is used. */
export function freeBytes(
  devices: readonly string[],
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): number {
  const free = capacities.flatMap(device => (devices.includes(device.id) ? [freeOn(device, occupants)] : []))
  return free.length > 0 ? Math.max(0, Math.min(...free)) * free.length : 0
}

const shareOf = (other: Occupant): number => other.bytes / other.devices.length
const bytesOn = (device: DeviceCapacity, occupants: readonly Occupant[]): number =>
  occupants.reduce((sum, other) => (other.devices.includes(device.id) ? sum + shareOf(other) : sum), 0)
const freeOn = (device: DeviceCapacity, occupants: readonly Occupant[]): number =>
  device.capacity - bytesOn(device, occupants)

/** The occupants of each device, by its id. */
function byDevice(occupants: readonly Occupant[]): Map<string, Occupant[]> {
  const there = new Map<string, Occupant[]>()
  for (const other of occupants)
    for (const id of other.devices) {
      const own = there.get(id)
      if (own) own.push(other)
      else there.set(id, [other])
    }
  return there
}

/** Which engines to evict so that `share` bytes are free on this device; undefined when that is not possible. */
function optionOn(
  device: DeviceCapacity,
  share: number,
  there: readonly Occupant[],
  mayEvict: boolean,
): Option | undefined {
  const free = device.capacity - there.reduce((sum, other) => sum + shareOf(other), 0)
  const candidates = there
    .filter(other => mayEvict && !other.pinned)
    .map(occupant => ({ occupant, frees: shareOf(occupant) }))
  const evict = evictionFor(share - free, candidates)
  return evict && { device, evict, spare: free + evict.reduce((sum, other) => sum + shareOf(other), 0) - share }
}

/** Chooses the devices with the cheapest evictions; of equal ones, those with the least spare memory. */
function choose(options: readonly Option[], devices: number): Option[] {
  const remaining = options.toSorted((a, b) => a.spare - b.spare)
  return Array.from({ length: devices }, () => {
    const best = cheapest(remaining, ({ evict }) => evictionCost(evict))!
    remaining.splice(remaining.indexOf(best), 1)
    return best
  })
}

/** The engines to evict, each once. Evicting one that spans several devices may make another eviction unnecessary. */
function evictedFrom(chosen: readonly Option[], share: number, occupants: readonly Occupant[]): Occupant[] {
  const all = [...new Set(chosen.flatMap(option => option.evict))]
  if (chosen.length < 2) return all
  const there = occupants.filter(other => chosen.some(({ device }) => other.devices.includes(device.id)))
  return minimalChoice(all, evicted => {
    const staying = there.filter(other => !evicted.includes(other))
    return chosen.every(({ device }) => freeOn(device, staying) >= share)
  })
}

const names = (occupants: readonly Occupant[]): string =>
  [...new Set(occupants.map(other => `'${other.modelId}'`))].join(' and ') || 'another model'
