import { movingAverage } from '../../core/moving-average.ts'
import type { Booking, ModelState, Resident } from './model-state.ts'
import { isServing, liveResidents, parkedResident } from './model-state.ts'
import { freeOn, shareOn } from './occupancy.ts'
import type { DeviceCapacity, Occupant, PlacementRequest } from './place.ts'

/** The device whose memory parked engines use. */
export const host = 'cpu'

/**
 * What is booked for an engine. One that was woken has the main memory of its weights until it ends: vLLM's cache of pinned
 * memory and SGLang's memory saver give none of it back.
 */
export function bookingNow({ devices, bytes, shares, parkedBytes }: Booking & Pick<Resident, 'parkedBytes'>): Booking {
  if (parkedBytes === 0 || devices.includes(host)) return { devices, bytes, shares }
  return { devices: [...devices, host], bytes: bytes + parkedBytes, shares: [...shares, parkedBytes] }
}

/** What is booked for an engine while it is parked: what it keeps of each card, and its weights in the main memory. */
export function parkedBooking({ devices, parking }: Resident): Booking {
  const { hostBytes, cardBytes } = parking!
  const shares = [...devices.map(() => cardBytes), hostBytes]
  return { devices: [...devices, host], shares, bytes: shares.reduce((sum, bytes) => sum + bytes, 0) }
}

/** Whether parking and waking an engine takes less time than a cold start, by what was measured; true before that. */
export const pays = ({ parkingFault, durations }: Pick<ModelState, 'parkingFault' | 'durations'>): boolean =>
  parkingFault === null &&
  (durations.wakeMs === null ||
    durations.loadMs === null ||
    (durations.parkMs ?? 0) + durations.wakeMs < durations.loadMs)

/** Whether an idle engine is parked where the memory has room for it. */
export const isParkable = (resident: Resident): boolean => {
  const { parking, serves, leases } = resident
  return (
    isServing(resident) &&
    parking !== null &&
    leases === 0 &&
    !serves.retired &&
    !serves.unloaded &&
    parkedResident(serves) === undefined &&
    pays(serves)
  )
}

/** How long a model has had no engine that serves. */
export const awayOf = ({ away: { since, usualMs } }: ModelState, now: number): NonNullable<Occupant['away']> => ({
  forMs: since === null ? 0 : now - since,
  usualMs,
})

/** The only engine of a model that serves leaves, or the model gets one again: this is how long it is usually away. */
export function leaves(state: ModelState, now: number): void {
  if (liveResidents(state).length === 1) state.away.since = now
}
export function returns({ away }: ModelState, now: number): void {
  if (away.since !== null) away.usualMs = movingAverage(away.usualMs, now - away.since)
  away.since = null
}

/** Milliseconds until a parked engine should be woken. One that is overdue may stay away for as long again. */
const untilWoken = ({ away: { forMs, usualMs } = { forMs: 0, usualMs: null } }: Occupant): number =>
  usualMs !== null && forMs < usualMs ? usualMs - forMs : forMs

/**
 * Whether a parked engine ends for one whose model is usually away for `ms`, null where nobody knows. Models that are used in
 * turn would otherwise end each other's engines, each just before it is woken.
 */
const makesRoom = (one: Occupant, ms: number | null): boolean => {
  const { forMs = 0, usualMs = null } = one.away ?? {}
  return ms === null ? usualMs === null || forMs >= usualMs : ms < untilWoken(one)
}

/**
 * The parked engines that end so that another can be parked, those first that are woken last; undefined where there is no room
 * for it. `occupants`: all other engines, in the state after the parking. No card may lack what is booked there, and engines that
 * are or were parked use no more than `budget` bytes of the main memory together.
 */
export function parkedInstead(
  resident: Resident,
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
  budget: number,
): string[] | undefined {
  const booked = parkedBooking(resident)
  const used = capacities.filter(({ id }) => booked.devices.includes(id))
  // What is parked would stay in the same memory, or is not measured.
  if (used.length < booked.devices.length || used.some(({ sharesWith }) => sharesWith)) return undefined
  const older = occupants
    .filter(one => one.parked && !one.busy && makesRoom(one, resident.serves.away.usualMs))
    .toSorted((a, b) => untilWoken(b) - untilWoken(a))
  const ended: string[] = []
  for (let rest = occupants; ; ) {
    const inUse = rest.reduce((sum, { parkedBytes = 0 }) => sum + parkedBytes, 0)
    const fits = used.every(device => freeOn(device, rest) >= shareOn(booked, device.id))
    if (fits && inUse + shareOn(booked, host) <= budget) return ended
    const next = older.shift()
    if (!next) return undefined
    ended.push(next.engineId)
    rest = rest.filter(one => one !== next)
  }
}

/** The placement of a parked engine that is woken: on its cards, with what it had of them. */
export function placeWaking({ awake, placement }: Resident, { mayEvict }: PlacementRequest): PlacementRequest {
  const { devices, shares } = awake!
  const { longer: _, split: _split, mostDevices: _most, takesShare: _share, ...rest } = placement
  return { ...rest, bytes: Math.max(...shares) * devices.length, devices: devices.length, only: devices, mayEvict }
}
