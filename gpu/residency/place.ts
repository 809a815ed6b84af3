import type { BytesFrom } from '../../core/models/model-plan.ts'
import type { CardSplit } from '../engines/gguf/card-split.ts'
import { formatBytes } from '../engines/gguf/sizing.ts'
import type { MemoryPlan } from '../estimate/estimate.ts'
import type { SourceFault } from '../estimate/source-check.ts'
import { bytesFor, shareFor } from './equal-share.ts'
import { cheapest, evictionCost, evictionFor, minimalChoice } from './evict.ts'
import { byDevice, bytesOn, decide, freeOn, names, shareOn } from './occupancy.ts'
import { placeDivided } from './place-divided.ts'
import { onSharedMemory } from './shared-memory.ts'

export interface DeviceCapacity {
  id: string
  kind: 'gpu' | 'cpu'
  /** Bytes for models: the bookable part of the memory minus what other programs use. */
  capacity: number
  /** The whole memory; absent: `capacity` and what other programs use. */
  totalBytes?: number
  /** Ids of devices whose memory is the same: what is booked there is not free here. Absent: its memory is its own. */
  sharesWith?: readonly string[]
  /** Why it is not used for now, as a sentence. */
  fault?: string
  /** Bytes that other programs use; 0 if absent. */
  usedByOthers?: number
  /** It is given to other programs for now: for how long, milliseconds (null: nobody knows), and `is paused until …`. `ofPool`: why its whole pool is, as a sentence. */
  pause?: { endsInMs: number | null; text: string; ofPool?: string }
  /** The pool to which it belongs, and its machine there: an engine uses devices of one machine. Absent: this machine. */
  pool?: string
  node?: string
  /** Why it is not known what its pool has now, as a sentence: nothing is placed there meanwhile. */
  unknown?: string
}

/** An engine that uses or will use memory, or free memory that is reserved. Engines that are stopping are left out. */
export interface Occupant {
  engineId: string
  modelId: string
  devices: readonly string[]
  /** Total. */
  bytes: number
  /** Bytes on each of its devices; absent: equal parts. */
  shares?: readonly number[]
  /** Runs requests, is loading, or is reserved for a model that is placed first: not evicted for another model now. */
  busy: boolean
  /** Kept loaded by its configuration. */
  pinned: boolean
  /** It serves nobody, and has only the memory that is left to it. */
  parked?: boolean
  /** Bytes of the main memory that it has got by being parked. */
  parkedBytes?: number
  /** For how long its model has no engine that serves, and for how long it usually has none; null before that was measured. */
  away?: { forMs: number; usualMs: number | null }
  /** The other engines of its model have slots for all requests that run: it makes room at once for another model. */
  surplus?: boolean
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
  /** How many running executions need its model next: of equal ones it leaves last. Absent: none. */
  runsNext?: number
}

export interface PlacementRequest {
  modelId: string
  bytes: number
  /** What its engine is told to use; absent where that is `bytes`, which is more if engines of it have used more. */
  estimate?: number
  bytesFrom?: BytesFrom | undefined
  /** How many devices of `kind` it is divided among. `none`: infer does not start the engine. */
  devices: number
  /** On how many nodes they are, as many on each; absent: on one. */
  nodes?: number
  /** Among how many at most, where fewer have no room for it; absent: `devices`. Only with `split`. */
  mostDevices?: number
  /** How its layers are divided among several cards, for `bytes` on `devices` of them; absent: in equal parts. */
  split?: CardSplit | undefined
  /** Another layout, which is preferred where it fits into free memory of more cards. */
  longer?: LongerContext | undefined
  /** What would make its context longer, as sentences, if `longer` is not what it gets. */
  longerContext?: readonly string[] | undefined
  kind: 'gpu' | 'cpu' | 'none'
  /** Its engine is told one share of memory for all of its devices. */
  takesShare?: boolean
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
  /** The pool for which this layout is; absent: this machine. */
  pool?: string
  /** It was made before the pool had ever answered, and is to be made again once it has. */
  isUnsized?: boolean
  /** How many engines and cards the pool may give to all models, and to this one; absent: no limit. */
  limits?: PoolLimits
  /** Its layouts in the other pools that it may use, in this order. */
  elsewhere?: readonly PoolLayout[]
}

export interface PoolLimits {
  maxEngines?: number | undefined
  maxCards?: number | undefined
  ownEngines?: number | undefined
  ownCards?: number | undefined
}

/** How a model is loaded in another pool than its first one. `slots`: requests at a time of an engine there. */
export type PoolLayout = Omit<PlacementRequest, 'modelId' | 'mayEvict' | 'avoid' | 'elsewhere'> & {
  pool: string | undefined
  slots: number
}

/** A layout of a model on more cards than it needs, with the context that people need. */
export interface LongerContext {
  layout: Pick<PlacementRequest, 'bytes' | 'estimate' | 'devices' | 'split' | 'plan'>
  /** Requests at a time. */
  slots: number
  /** Tokens of one request in this layout, and in that on the fewest cards. */
  tokens: number
  fewerTokens: number
}

/** `wakes`: the parked engine of the model that is woken; absent: a new one is started. */
export type PlacementDecision =
  | ({ do: 'load'; evict: readonly string[]; wakes?: string } & Chosen)
  /** `reserve`: what it will use. `for`: the busy engines among those that will be evicted. `where`: the devices then. */
  | { do: 'wait'; for: readonly string[]; reserve: Reservation; where: Chosen; reason: string; pause?: WaitForPause }
  | { do: 'refuse'; reason: string }

/** It waits for devices that are paused for this long, milliseconds; null where nobody knows. */
export interface WaitForPause {
  endsInMs: number | null
}

/** Where an engine is placed. */
export interface Chosen {
  devices: readonly string[]
  /** Bytes and layers on each of them; absent: equal parts. */
  shares?: readonly number[]
  layers?: readonly number[]
  /** The layout in which it is placed there, if that is not the one on the fewest cards. */
  longer?: LongerContext
  /** The pool of these devices; absent: this machine. */
  pool?: string
}

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
 * never killed; pinned ones stay. A model whose layers can be divided gets several cards only where fewer have no room
 * after such evictions: an eviction costs one load later, and every request of a divided model is slower. For a longer
 * context it gets further cards only where they have free memory.
 */
export function place(
  request: PlacementRequest,
  loaded: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): PlacementDecision {
  const occupants = onSharedMemory(loaded, capacities)
  const impossible = request.impossible ?? request.loadFault?.text
  if (impossible !== undefined) return { do: 'refuse', reason: impossible }
  if (request.kind === 'none') return { do: 'load', devices: [], evict: [] }
  const { only } = request
  const allowed = capacities.filter(device => device.kind === request.kind && (only?.includes(device.id) ?? true))
  const candidates = allowed.filter(({ fault }) => fault === undefined)
  const faults = allowed
    .flatMap(({ id, fault }) => (fault === undefined ? [] : [` ${id} is not used: ${fault}`]))
    .join('')
  const name = `'${request.modelId}'`
  const [one, several] = kindNames(request)
  if (candidates.length === 0)
    return {
      do: 'refuse',
      reason: `${name} needs a ${one}, and this server has ${faults ? 'none that works' : 'found none'}.${faults}`,
    }
  if (candidates.length < request.devices)
    return {
      do: 'refuse',
      reason: `${name} needs ${request.devices} ${several}; this server has ${candidates.length}.${faults}`,
    }
  const longer = placeLonger(request, loaded, capacities)
  if (longer) return longer
  const { devices, mostDevices = devices } = request
  if (request.takesShare && devices > 1) return placeShare(request, candidates, occupants)
  if (request.split === undefined || mostDevices < 2) return placeEvenly(request, candidates, occupants)
  const alone = devices === 1 ? placeEvenly(request, candidates, occupants) : undefined
  if (alone?.do === 'load') return alone
  const divided = placeDivided(request, request.split, candidates, occupants)
  if (divided === undefined) return alone ?? doesNotFit(request, candidates, occupants)
  return divided.do === 'load' || alone?.do !== 'wait' ? divided : alone
}

/** Places a model on more cards than it needs, for a longer context; undefined where these have no free memory for it. */
function placeLonger(
  { longer, ...request }: PlacementRequest,
  loaded: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): PlacementDecision | undefined {
  if (!longer) return undefined
  const { layout } = longer
  const decision = place({ ...request, ...layout, mostDevices: layout.devices, mayEvict: false }, loaded, capacities)
  const isFine = decision.do === 'load' && !decision.devices.some(id => request.avoid?.includes(id))
  return isFine ? { ...decision, longer } : undefined
}

/**
 * Places a model whose engine takes the same share of each of its cards, of which the larger ones must have more free than
 * it uses: with the least share by which the smallest has enough, where possible without an eviction.
 */
function placeShare(
  request: PlacementRequest,
  candidates: readonly DeviceCapacity[],
  occupants: readonly Occupant[],
): PlacementDecision {
  const each = request.bytes / request.devices
  const shares = [...new Set(candidates.map(card => shareFor(card, each)))].sort((a, b) => a - b)
  const decisions = shares.flatMap(share => {
    const able = candidates.filter(card => shareFor(card, each) <= share)
    const needOf = (card: DeviceCapacity) => Math.max(each, Math.floor(bytesFor(card, share)))
    return able.length < request.devices ? [] : [placeEvenly(request, able, occupants, needOf)]
  })
  const loads = decisions.filter(one => one.do === 'load')
  const made = loads.find(({ evict }) => evict.length === 0) ?? loads[0] ?? decisions.find(one => one.do === 'wait')
  if (made) return made
  const [, several] = kindNames(request)
  const isLarge = candidates.filter(({ capacity }) => capacity >= each).length >= request.devices
  return isLarge && request.mayEvict
    ? {
        do: 'refuse',
        reason: `'${request.modelId}' needs ${formatBytes(each)} on each of ${request.devices} ${several}, and its engine takes the same share of all of them: the larger ones here have too little free for that.`,
      }
    : placeEvenly(request, candidates, occupants)
}

/** Places a model on `devices` of the candidates, with an equal part on each, or as much as `needOf` says. */
function placeEvenly(
  request: PlacementRequest,
  candidates: readonly DeviceCapacity[],
  occupants: readonly Occupant[],
  needOf?: (device: DeviceCapacity) => number,
): PlacementDecision {
  const name = `'${request.modelId}'`
  const [one, several] = kindNames(request)
  const share = request.bytes / request.devices
  const each = request.devices > 1 ? ` on each of ${request.devices} ${several}` : ''
  const needs = `${name} needs ${formatBytes(share)} of memory${each}`
  const needed = needOf ?? (() => share)
  const largeEnough = candidates.filter(device => device.capacity >= needed(device))
  if (largeEnough.length < request.devices) {
    const largest = candidates.reduce((most, device) => (device.capacity > most.capacity ? device : most))
    const has = `the most that one ${one} here has is ${formatBytes(largest.capacity)}`
    // Without them it would fit, so what they release is what to wait for.
    const others = candidates.filter(({ capacity, usedByOthers = 0 }) => capacity + usedByOthers >= share)
    if (others.length < request.devices) return { do: 'refuse', reason: `${needs}; ${has}.` }
    const used = formatBytes(Math.max(...others.map(({ usedByOthers = 0 }) => usedByOthers)))
    return { do: 'refuse', reason: `${needs}; ${has} while other programs use ${used}. End them and try again.` }
  }

  const there = byDevice(occupants)
  const options = largeEnough.flatMap(
    device => optionOn(device, needed(device), there.get(device.id) ?? [], request.mayEvict) ?? [],
  )
  if (options.length < request.devices) {
    if (!request.mayEvict) return noFreeMemory(request)
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
  const evicted = evictedFrom(chosen, needed, occupants)
  const used = chosen.map(option => option.device)
  const where = { devices: used.map(({ id }) => id), ...(needOf && { shares: used.map(needOf) }) }
  return decide(request, used, where, evicted)
}

/** Why a model that can be divided fits on no number of cards that it may have. */
function doesNotFit(
  request: PlacementRequest,
  candidates: readonly DeviceCapacity[],
  occupants: readonly Occupant[],
): PlacementDecision {
  if (!request.mayEvict) return noFreeMemory(request)
  const pinned = occupants.filter(other => other.pinned && candidates.some(({ id }) => other.devices.includes(id)))
  const sizes = candidates.map(device => Math.max(0, freeOn(device, pinned))).toSorted((a, b) => b - a)
  const together = sizes.slice(0, request.mostDevices ?? request.devices).reduce((sum, bytes) => sum + bytes, 0)
  const beside = pinned.length > 0 ? ` beside ${names(pinned)}, which is kept loaded (replicas.min)` : ''
  const reason = `'${request.modelId}' needs ${formatBytes(request.bytes)} of memory on ${request.devices} GPUs; the GPUs here have ${formatBytes(together)} together${beside}.`
  return { do: 'refuse', reason }
}

const noFreeMemory = ({ modelId }: PlacementRequest): PlacementDecision => ({
  do: 'wait',
  for: [],
  reserve: { modelId, engines: [], free: [] },
  where: { devices: [] },
  reason: `There is no free memory for another engine of '${modelId}'.`,
})

const kindNames = ({ kind }: PlacementRequest): [string, string] =>
  kind === 'cpu' ? ['processor', 'processor'] : ['GPU', 'GPUs']

/**
 * Returns the bytes that are free on all of these devices together. `evenly`: as far as an equal share of each can be used.
 */
export function freeBytes(
  devices: readonly string[],
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
  evenly: boolean,
): number {
  const there = onSharedMemory(occupants, capacities)
  const free = capacities.flatMap(device => (devices.includes(device.id) ? [Math.max(0, freeOn(device, there))] : []))
  if (free.length === 0) return 0
  return evenly ? Math.min(...free) * free.length : free.reduce((sum, bytes) => sum + bytes, 0)
}

/** Which engines to evict so that `share` bytes are free on this device; undefined when that is not possible. */
function optionOn(
  device: DeviceCapacity,
  share: number,
  there: readonly Occupant[],
  mayEvict: boolean,
): Option | undefined {
  const free = freeOn(device, there)
  if (free >= share) return { device, evict: [], spare: free - share }
  const candidates = there
    .filter(other => mayEvict && !other.pinned)
    .map(occupant => ({ occupant, frees: shareOn(occupant, device.id) }))
  const evict = evictionFor(share - free, candidates)
  return evict && { device, evict, spare: free + bytesOn(device, evict) - share }
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
function evictedFrom(
  chosen: readonly Option[],
  needed: (device: DeviceCapacity) => number,
  occupants: readonly Occupant[],
): Occupant[] {
  const all = [...new Set(chosen.flatMap(option => option.evict))]
  if (chosen.length < 2) return all
  const there = occupants.filter(other => chosen.some(({ device }) => other.devices.includes(device.id)))
  return minimalChoice(all, evicted => {
    const staying = there.filter(other => !evicted.includes(other))
    return chosen.every(({ device }) => freeOn(device, staying) >= needed(device))
  })
}
