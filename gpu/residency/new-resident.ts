import type { Booking, ModelState, Resident } from './model-state.ts'
import type { Chosen } from './place.ts'

/** The layout of a model in the pool that was chosen, and for a longer context, if that was chosen. */
export function placementAs(
  placement: ModelState['placement'],
  { longer, pool }: Pick<Chosen, 'longer' | 'pool'>,
): ModelState['placement'] {
  const { elsewhere, ...first } = placement
  const other = pool === first.pool ? undefined : elsewhere?.find(one => one.pool === pool)
  const own = other ? { modelId: first.modelId, ...other } : elsewhere ? first : placement
  return longer ? { ...own, ...longer.layout } : own
}

/** Requests at a time of an engine that is placed there. */
const slotsAs = ({ placement, slots }: ModelState, { longer, pool }: Pick<Chosen, 'longer' | 'pool'>): number =>
  longer?.slots ??
  (pool === placement.pool ? slots : placement.elsewhere?.find(one => one.pool === pool)?.slots) ??
  slots

/** What is booked for an engine of the model where it is placed. */
export function bookingOf(state: ModelState, chosen: Chosen): Booking {
  const { devices, shares } = chosen
  const { bytes } = placementAs(state.placement, chosen)
  return {
    devices,
    bytes: shares?.reduce((sum, one) => sum + one, 0) ?? bytes,
    shares: shares ?? devices.map(() => bytes / devices.length),
  }
}

export function newResident(
  serves: ModelState,
  engineId: string,
  chosen: Chosen,
  now: number,
  ahead = false,
): Resident {
  const { layers, longer } = chosen
  const placement = placementAs(serves.placement, chosen)
  const booking = bookingOf(serves, chosen)
  return {
    engineId,
    serves,
    placement,
    longer,
    ...booking,
    layers,
    slots: slotsAs(serves, chosen),
    startedAt: now,
    launchedAt: null,
    bookedBytes: booking.bytes,
    usedBytes: null,
    state: 'starting',
    phase: 'launching',
    parking: null,
    awake: null,
    parkedBytes: 0,
    wakes: false,
    takenOver: false,
    leases: 0,
    alone: false,
    heldUntil: Number.NEGATIVE_INFINITY,
    pause: null,
    draining: null,
    endsAt: null,
    isEnding: false,
    successor: null,
    unreachable: null,
    queuedMs: null,
    readyAt: null,
    ahead,
    lastUsedAt: now,
    hasSucceeded: false,
    neededAt: now,
    owed: 0,
    keptUntil: Number.NEGATIVE_INFINITY,
  }
}
