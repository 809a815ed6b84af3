/** What `place` must know of a device: how much of it may be booked. */
export interface Place {
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

export interface Wanted {
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
  device: Place
  spare: number
  evict: Occupant[]
  busy: number
}

/**
 * Decides where a model goes. Pure: reads no clock, starts nothing, logs nothing, because it is asked again for every
 * waiting model on every change. Idle engines leave first, least recently used; a busy one is waited for, never
 * killed; a pinned one stays. A model that spreads over several devices takes an even share of each.
 */
export function place(want: Wanted, occupants: readonly Occupant[], places: readonly Place[]): Decision {
  if (want.impossible !== undefined) return { do: 'refuse', reason: want.impossible }
  if (want.kind === 'none') return { do: 'load', devices: [], evict: [] }
  const of = places.filter(device => device.kind === want.kind)
  const name = `'${want.modelId}'`
  if (of.length < want.devices) return { do: 'refuse', reason: tooFew(name, want, of.length) }
  const share = want.bytes / want.devices
  const able = of.filter(device => device.capacity >= share)
  if (able.length < want.devices) return { do: 'refuse', reason: tooBig(name, want, share, of) }

  const options = able
    .map(device => optionAt(device, share, occupants, want.mayEvict))
    .filter(option => option.spare >= 0)
    .sort((a, b) => a.busy - b.busy || a.evict.length - b.evict.length || a.spare - b.spare)
  if (options.length < want.devices) {
    const pinned = occupants.filter(other => other.pinned && other.devices.some(id => able.some(d => d.id === id)))
    if (!want.mayEvict) return { do: 'wait', for: [], reason: `There is no room for another engine of ${name}.` }
    return {
      do: 'refuse',
      reason: `${name} does not fit beside ${names(pinned)}, which is kept loaded (replicas.min).`,
    }
  }
  const chosen = options.slice(0, want.devices)
  const leaving = [...new Set(chosen.flatMap(option => option.evict))]
  const busy = leaving.filter(other => other.busy)
  if (busy.length > 0)
    return {
      do: 'wait',
      for: busy.map(other => other.engineId),
      reason: `${name} waits for ${names(busy)} to finish, whose memory it needs.`,
    }
  return { do: 'load', devices: chosen.map(option => option.device.id), evict: leaving.map(other => other.engineId) }
}

/** What it takes to have `share` bytes here; a negative `spare` says that it cannot be had. */
function optionAt(device: Place, share: number, occupants: readonly Occupant[], mayEvict: boolean): Option {
  const here = occupants.filter(other => other.devices.includes(device.id))
  const shareOf = (other: Occupant) => other.bytes / other.devices.length
  let free = device.capacity - here.reduce((sum, other) => sum + shareOf(other), 0)
  const evict: Occupant[] = []
  const order = here
    .filter(other => mayEvict && !other.pinned)
    .sort((a, b) => Number(a.busy) - Number(b.busy) || a.lastUsedAt - b.lastUsedAt)
  for (const other of order) {
    if (free >= share) break
    evict.push(other)
    free += shareOf(other)
  }
  return { device, spare: free - share, evict, busy: evict.filter(other => other.busy).length }
}

const word = (kind: Wanted['kind'], many = false): string => (kind === 'cpu' ? 'processor' : many ? 'GPUs' : 'GPU')

function tooFew(name: string, want: Wanted, there: number): string {
  if (there === 0) return `${name} needs a ${word(want.kind)}, and this server has found none.`
  return `${name} needs ${want.devices} ${word(want.kind, true)}; this server has ${there}.`
}

function tooBig(name: string, want: Wanted, share: number, of: readonly Place[]): string {
  const largest = Math.max(...of.map(device => device.capacity))
  const each = want.devices > 1 ? ` on each of ${want.devices} ${word(want.kind, true)}` : ''
  return `${name} needs ${size(share)} of memory${each}; the most that one ${word(want.kind)} here has is ${size(largest)}.`
}

const names = (occupants: readonly Occupant[]): string =>
  [...new Set(occupants.map(other => `'${other.modelId}'`))].join(' and ') || 'another model'

/** Bytes for a sentence. */
export const size = (bytes: number): string =>
  bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.ceil(bytes / 2 ** 20)} MiB`
