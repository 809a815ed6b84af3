import type { Demand } from '../../core/models/fleet.ts'
import {
  expectedLoadMs,
  expectedRunMs,
  expectedWorkMs,
  loadIsKnown,
  type ModelState,
  pausedUntil,
  type Resident,
  servingResidents,
  slotsOf,
  untilFree,
} from './model-state.ts'
import type { DeviceCapacity } from './place.ts'

export interface Expectations {
  now: number
  demandOf: (state: ModelState) => Demand | undefined
  /** The models that wait, in the order in which they are placed. */
  order: readonly ModelState[]
  capacities: readonly DeviceCapacity[]
  /** An engine by its id. */
  resident: (engineId: string) => Resident | undefined
  /** How many loads a busy engine serves at most while another model waits for its memory. */
  orderBound: number
  /** Milliseconds until evicted engines have ended and their memory is free. */
  clearingMs: number
}

/** No load is expected to end earlier than this, milliseconds. */
const soonMs = 1_000

/** Milliseconds. */
export interface ExpectedWait {
  /** Until the last waiting request of the model should get a slot. */
  etaMs: number
  /** The same, but where the load has not begun, until it can begin. */
  retryMs: number
}

/**
 * How long the waiting requests of a model should wait: what the engines that it waits for have to do, then the models that
 * are placed before it, each with its load and its waiting requests, then its own load. `evicts`: others have to end first.
 */
export function expectedWait(
  state: ModelState,
  expectations: Expectations,
  evicts = state.waitsFor.length > 0,
): ExpectedWait {
  const { now, demandOf, order, capacities, clearingMs } = expectations
  const known = (ms: number): ExpectedWait => ({ etaMs: ms, retryMs: ms })
  const pauseEnd = pausedUntil(state, now)
  if (pauseEnd !== null) return known(pauseEnd - now)
  const live = servingResidents(state)
  const starting = live.find(resident => resident.state === 'starting')
  if (starting) return known(untilReady(starting, expectations))
  const slots = slotsOf(live)
  if (slots > 0) return known(untilFree(state.durations, Math.max(0, (demandOf(state)?.interactive ?? 0) - 1), slots))
  const blocked = state.waitsFor.map(id => untilDone(id, state.waitsUntil, expectations))
  const failedUntil = state.failures ? state.failures.retryAt - now : 0
  const at = order.findIndex(({ model, retired }) => model.id === state.model.id && !retired)
  const before = order.slice(0, Math.max(0, at))
  const ahead = before
    .filter(
      other =>
        other.placement.kind === state.placement.kind && servingResidents(other).length === 0 && !other.waitsForPause,
    )
    .reduce((sum, other) => sum + turnMs(other, demandOf(other), expectations), 0)
  const retryMs = Math.max(0, failedUntil, ...blocked) + ahead / roomsFor(state, capacities)
  const clearing = evicts || ahead > 0 ? clearingMs : 0
  return { etaMs: retryMs + clearing + expectedLoadMs(state), retryMs }
}

/**
 * A load that takes longer than expected should take as long again as it is overdue; if nothing was known of it, half as
 * long again as it has taken.
 */
function untilReady({ serves, startedAt, launchedAt, placement }: Resident, { now, clearingMs }: Expectations): number {
  const loadMs = expectedLoadMs(serves, placement.pool)
  if (launchedAt === null) return Math.max(0, startedAt + clearingMs - now) + loadMs
  const elapsed = now - launchedAt
  const left = loadMs - elapsed
  if (left >= soonMs) return left
  return loadIsKnown(serves) ? Math.max(soonMs, -left) : Math.max(left, elapsed / 2)
}

/** How long the waiting requests of a model take on its slots, at most as long as another model lets it serve. */
function workMs(state: ModelState, demand: Demand | undefined, { orderBound }: Expectations): number {
  if (!demand) return 0
  return Math.min(expectedWorkMs(state.durations, demand) / state.slots, orderBound * expectedLoadMs(state))
}

const turnMs = (state: ModelState, demand: Demand | undefined, expectations: Expectations): number =>
  expectations.clearingMs + expectedLoadMs(state) + workMs(state, demand, expectations)

/** `until`: when it takes no more requests at the latest. */
function untilDone(engineId: string, until: number | null, expectations: Expectations): number {
  const resident = expectations.resident(engineId)
  if (!resident) return 0
  const { serves, state, leases } = resident
  const { now } = expectations
  const loading = state === 'starting' ? untilReady(resident, expectations) : 0
  const kept = Math.max(0, resident.keptUntil - now) / 2
  const running = leases > 0 ? expectedRunMs(serves.durations) / 2 : 0
  const work = workMs(serves, expectations.demandOf(serves), expectations)
  return loading + kept + running + Math.min(work, until === null ? work : Math.max(0, until - now))
}

/** How many engines as large as this one the devices could hold at once. */
function roomsFor({ placement }: ModelState, capacities: readonly DeviceCapacity[]): number {
  const share = placement.bytes / Math.max(1, placement.devices)
  const rooms = capacities
    .filter(
      ({ id, kind, pool }) =>
        pool === placement.pool && kind === placement.kind && (placement.only?.includes(id) ?? true),
    )
    .reduce((sum, { capacity }) => sum + Math.floor(capacity / Math.max(1, share)), 0)
  return Math.max(1, Math.floor(rooms / Math.max(1, placement.devices)))
}
