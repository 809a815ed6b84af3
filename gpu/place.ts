import { cheapest, costOf, evictionFor, minimalChoice } from './evict.ts'

/** What `place` must know of a device: how much of it may be booked. */
export interface DeviceCapacity {
  id: string
  kind: 'nvidia' | 'cpu'
  /** Bytes that models may fill: the whole of it less what others use. */
  capacity: number
}

/** One engine that holds, or is about to hold, memory. One that is being stopped is not among them any more. */
export interface Occupant {
  engineId: string
  modelId: string
  devices: readonly string[]
  /** In all, spread evenly over its devices. */
  bytes: number
  /** Has requests running, or is still loading: waited for, never stopped for another. */
  busy: boolean
  /** Kept loaded by its configuration. */
  pinned: boolean
  /** Milliseconds on any clock that all of them share. */
  lastUsedAt: number
}

export interface PlacementRequest {
  modelId: string
  bytes: number
  /** How many devices of the kind it spreads over; `none` is for engines that run elsewhere. */
  devices: number
  kind: 'nvidia' | 'cpu' | 'none'
  /** Why it cannot run on this machine at all, as a sentence. */
  impossible?: string | undefined
  /** False for a further replica: that takes room nobody uses and stops nobody. */
  mayEvict: boolean
}

export type Decision =
  | { do: 'load'; devices: readonly string[]; evict: readonly string[] }
  | { do: 'wait'; for: readonly string[]; reason: string }
  | { do: 'refuse'; reason: string }

interface Option {
  device: DeviceCapacity
  /** Bytes beyond what is wanted, once the engines in `evict` have left. */
  spare: number
  evict: Occupant[]
}

/**
 * Decides where a model goes. Pure: reads no clock, starts nothing, logs nothing, because it is asked again for every
 * waiting model on every change. Idle engines leave, as few bytes as suffice, least recently used first; a busy one is
 * waited for, never killed; a pinned one stays. A model that spreads over several devices takes an even share of each.
 */
export function place(
  request: PlacementRequest,
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): Decision {
  if (request.impossible !== undefined) return { do: 'refuse', reason: request.impossible }
  if (request.kind === 'none') return { do: 'load', devices: [], evict: [] }
  const of = capacities.filter(device => device.kind === request.kind)
  const name = `'${request.modelId}'`
  if (of.length < request.devices) return { do: 'refuse', reason: tooFew(name, request, of.length) }
  const share = request.bytes / request.devices
  const able = of.filter(device => device.capacity >= share)
  if (able.length < request.devices) return { do: 'refuse', reason: tooBig(name, request, share, of) }

  const options = able.flatMap(device => optionAt(device, share, occupants, request.mayEvict) ?? [])
  if (options.length < request.devices) {
    if (!request.mayEvict) return { do: 'wait', for: [], reason: `There is no room for another engine of ${name}.` }
    return { do: 'refuse', reason: beside(name, request, share, occupants, able) }
  }
  const chosen = choose(options, request.devices)
  const evicted = evictedFrom(chosen, share, occupants)
  const busy = evicted.filter(other => other.busy)
  if (busy.length > 0)
    return {
      do: 'wait',
      for: busy.map(other => other.engineId),
      reason: `${name} waits for ${names(busy)} to finish, whose memory it needs.`,
    }
  return { do: 'load', devices: chosen.map(option => option.device.id), evict: evicted.map(other => other.engineId) }
}

const shareOf = (other: Occupant): number => other.bytes / other.devices.length
const on = (device: DeviceCapacity, occupants: readonly Occupant[]): Occupant[] =>
  occupants.filter(other => other.devices.includes(device.id))
const freeOn = (device: DeviceCapacity, occupants: readonly Occupant[]): number =>
  device.capacity - on(device, occupants).reduce((sum, other) => sum + shareOf(other), 0)

/** What it takes to have `share` bytes here; undefined where it cannot be had. */
function optionAt(
  device: DeviceCapacity,
  share: number,
  occupants: readonly Occupant[],
  mayEvict: boolean,
): Option | undefined {
  const free = freeOn(device, occupants)
  const candidates = on(device, occupants)
    .filter(other => mayEvict && !other.pinned)
    .map(occupant => ({ occupant, frees: shareOf(occupant) }))
  const evict = evictionFor(share - free, candidates)
  return evict && { device, evict, spare: free + evict.reduce((sum, other) => sum + shareOf(other), 0) - share }
}

/** The devices on which least must leave; of those that are equal in that, the tightest fit. */
function choose(options: readonly Option[], devices: number): Option[] {
  const rest = options.toSorted((a, b) => a.spare - b.spare)
  return Array.from({ length: devices }, () => {
    const best = cheapest(rest, ({ evict }) => costOf(evict))!
    rest.splice(rest.indexOf(best), 1)
    return best
  })
}

/** The engines that leave the chosen devices, once each: one that spreads over several may make another's leaving needless. */
function evictedFrom(chosen: readonly Option[], share: number, occupants: readonly Occupant[]): Occupant[] {
  const all = [...new Set(chosen.flatMap(option => option.evict))]
  if (chosen.length < 2) return all
  return minimalChoice(all, evicted => {
    const staying = occupants.filter(other => !evicted.includes(other))
    return chosen.every(({ device }) => freeOn(device, staying) >= share)
  })
}

const word = (kind: PlacementRequest['kind'], many = false): string =>
  kind === 'cpu' ? 'processor' : many ? 'GPUs' : 'GPU'

function tooFew(name: string, request: PlacementRequest, there: number): string {
  if (there === 0) return `${name} needs a ${word(request.kind)}, and this server has found none.`
  return `${name} needs ${request.devices} ${word(request.kind, true)}; this server has ${there}.`
}

function tooBig(name: string, request: PlacementRequest, share: number, of: readonly DeviceCapacity[]): string {
  const largest = Math.max(...of.map(device => device.capacity))
  const each = request.devices > 1 ? ` on each of ${request.devices} ${word(request.kind, true)}` : ''
  return `${name} needs ${size(share)} of memory${each}; the most that one ${word(request.kind)} here has is ${size(largest)}.`
}

function beside(
  name: string,
  request: PlacementRequest,
  share: number,
  occupants: readonly Occupant[],
  able: readonly DeviceCapacity[],
): string {
  const pinned = occupants.filter(other => other.pinned)
  const most = Math.max(...able.map(device => freeOn(device, pinned)))
  const each = request.devices > 1 ? ` on each of ${request.devices} ${word(request.kind, true)}` : ''
  const kept = pinned.filter(other => able.some(device => other.devices.includes(device.id)))
  return `${name} needs ${size(share)} of memory${each}; beside ${names(kept)}, which is kept loaded (replicas.min), one ${word(request.kind)} here has at most ${size(Math.max(0, most))}.`
}

const names = (occupants: readonly Occupant[]): string =>
  [...new Set(occupants.map(other => `'${other.modelId}'`))].join(' and ') || 'another model'

/** Bytes for a sentence. */
export const size = (bytes: number): string =>
  bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.ceil(bytes / 2 ** 20)} MiB`
