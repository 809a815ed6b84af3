import type { Demand } from '../../core/models/fleet.ts'
import { type BackoffRules, circuitState } from './backoff.ts'
import {
  expectedLoadMs,
  expectedWorkMs,
  isAhead,
  isKeptLoaded,
  isSurplus,
  type ModelState,
  parkedResident,
  type Resident,
  type RunsNext,
  runningOf,
  servingResidents,
  shortage,
  slotsOf,
} from './model-state.ts'
import { awayOf, bookingNow, pays, placeWaking } from './parking.ts'
import {
  type DeviceCapacity,
  type Occupant,
  type PlacementDecision,
  type PlacementRequest,
  type Reservation,
  type WaitForPause,
} from './place.ts'
import { placeInPools } from './place-in-pools.ts'
import { withoutSuccessor } from './successor.ts'
import { waitsForReach, waitsForReachText } from './unreachable.ts'

export interface ResidencyRules {
  backoff: BackoffRules
  /**
   * How many loads a request may be behind the reference order before busy engines make room for its model. Fewer is
   * fairer, more loads less often.
   */
  orderBound: number
  /** An engine that ran this many milliseconds after its start does not count as a failed start, however it ended. */
  provenMs: number
}

export const defaultRules: ResidencyRules = {
  backoff: { firstMs: 1_000, maxMs: 300_000, openAfter: 5 },
  orderBound: 10,
  provenMs: 60_000,
}

/** The next step for a model, after its free slots have been offered to the queue. */
export type Step =
  /** Nothing waits for it and it is not kept loaded. */
  | { do: 'nothing' }
  /** A load is in progress, or no further engine is allowed. */
  | { do: 'continue' }
  /** Its starts fail: no attempt before `until`. Refuses all requests, those that time out before then, or none. */
  | { do: 'back off'; until: number; refuse: 'late' | 'all' | 'none' }
  /** It cannot be placed with the current devices, configuration and pinned engines. */
  | { do: 'refuse'; reason: string; refuse: 'all' | 'none' }
  /**
   * Its memory is in use by busy engines, or its devices are paused; decided again at `until`. Models that are placed after it
   * leave it `reserve`.
   */
  | {
      do: 'wait'
      reason: string
      for: readonly string[]
      until: number | null
      reserve: Reservation | null
      pause?: WaitForPause | undefined
    }
  /** It is too far behind the reference order: the engines in `drain` accept no more requests. */
  | { do: 'drain'; reason: string; for: readonly string[]; drain: readonly string[]; reserve: Reservation }
  | Extract<PlacementDecision, { do: 'load' }>

/**
 * Decides whether and when a model is loaded; `place` decides where. Pure. `demand` describes its requests in the
 * queue; undefined when there are none. `othersWait`: see `doOthersWait`.
 */
export function nextStep(
  state: ModelState,
  demand: Demand | undefined,
  now: number,
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
  rules: ResidencyRules,
  othersWait = false,
): Step {
  const missing = shortage(state)
  const waits = demand !== undefined || state.loadWaiters.length > 0
  const ending = withoutSuccessor(state)
  if (!waits && missing === 0 && ending.length === 0) return { do: 'nothing' }
  const live = servingResidents(state)
  if (live.some(resident => resident.state === 'starting')) return { do: 'continue' }
  const { min, max } = state.model.replicas
  if (live.length >= Math.max(min, max) + ending.length) return { do: 'continue' }
  const served = live.length > 0
  const isNeeded = missing > 0 || ending.length > 0
  if (served && !isNeeded && !needsReplica(state, demand)) return { do: 'continue' }

  const reachedBy = waitsForReach(state, now)
  if (reachedBy !== null)
    return { do: 'wait', reason: waitsForReachText(state.model.id), for: [], until: reachedBy, reserve: null }

  // It gives its memory back at this moment, and can be woken then.
  if ((parkedResident(state)?.phase ?? 'parked') !== 'parked') return { do: 'continue' }

  const startCircuit = circuitState(state.failures, now, rules.backoff)
  if (startCircuit !== 'closed')
    return {
      do: 'back off',
      until: state.failures!.retryAt,
      refuse: served ? 'none' : startCircuit === 'open' ? 'all' : 'late',
    }

  const avoid = state.avoided && now < state.avoided.until ? state.avoided.devices : []
  const request = { ...requestOf(state, othersWait), mayEvict: !served || isNeeded, avoid }
  // An engine makes no room for its own successor.
  const stays = new Set(ending.map(({ engineId }) => engineId))
  const others = occupants.map(other => (stays.has(other.engineId) ? { ...other, pinned: true } : other))
  const decision = placeWoken(state, request, others, capacities)
  if (decision.do === 'load') return decision
  const { reason } = decision
  if (decision.do === 'refuse')
    return ending.length > 0
      ? { do: 'wait', reason, for: [], until: null, reserve: null }
      : { do: 'refuse', reason, refuse: served ? 'none' : 'all' }
  const wait = { do: 'wait' as const, reason, for: decision.for }
  if (!waits || decision.for.length === 0) return { ...wait, until: null, reserve: null, pause: decision.pause }
  const waitedFor = occupants.filter(({ engineId }) => decision.for.includes(engineId))
  const isLate = waitedFor.every(({ surplus, turnUntil }) => surplus && turnUntil === null)
  const lateAt = isLate ? now : becomesLateAt(state, demand, decision.reserve, occupants, rules)
  // Reserved only when it is late, because until then another model may make use of the idle ones.
  const reserve = now >= lateAt ? decision.reserve : null
  if (waitedFor.some(({ turnSince }) => turnSince === null)) return { ...wait, until: null, reserve }
  const until = Math.max(lateAt, ...waitedFor.map(({ turnUntil }) => turnUntil ?? Number.NEGATIVE_INFINITY))
  if (now < until) return { ...wait, until: Number.isFinite(until) ? until : null, reserve }
  return { ...wait, do: 'drain', drain: drained(decision.reserve, occupants, state), reserve: decision.reserve }
}

/**
 * Whether another model waits for an engine that it can get, to which cards are left that this one needs only for a longer
 * context. `pending`: the models that wait for something.
 */
export function doOthersWait(
  state: ModelState,
  pending: Iterable<ModelState>,
  demandOf: (state: ModelState) => Demand | undefined,
): boolean {
  if (state.placement.longer === undefined) return false
  for (const other of pending) {
    if (other === state || other.isUnplaceable || servingResidents(other).length > 0) continue
    if (shortage(other) > 0 || other.loadWaiters.length > 0 || demandOf(other) !== undefined) return true
  }
  return false
}

/** The placement of a model, without the one for a longer context where others wait or an engine has failed with it. */
export const requestOf = ({ placement, keepsFewest }: ModelState, othersWait: boolean): ModelState['placement'] =>
  othersWait || keepsFewest ? { ...placement, longer: undefined } : placement

/** Whether its requests would wait longer for the engines that it has than another one takes to load. */
function needsReplica(state: ModelState, demand: Demand | undefined): boolean {
  if (!demand) return state.loadWaiters.length > 0
  const slots = Math.max(1, slotsOf(servingResidents(state)))
  return expectedWorkMs(state.durations, demand) / slots > expectedLoadMs(state)
}

/**
 * When the model is further behind the reference order than the bound, so that busy engines make room for it; infinite
 * while the order has begun none of its requests. A load counts as long as a change to this model and back takes for
 * each of the two on average.
 */
function becomesLateAt(
  state: ModelState,
  demand: Demand | undefined,
  { engines }: Pick<Reservation, 'engines'>,
  occupants: readonly Occupant[],
  { orderBound }: Pick<ResidencyRules, 'orderBound'>,
): number {
  const ownMs = expectedLoadMs(state)
  const [waiter] = state.loadWaiters
  const start = Math.min(
    demand?.referenceStart ?? Number.POSITIVE_INFINITY,
    waiter ? waiter.since + ownMs : Number.POSITIVE_INFINITY,
  )
  const othersMs = occupants
    .filter(({ engineId }) => engines.includes(engineId))
    .reduce((sum, { reloadMs }) => sum + reloadMs, 0)
  return start + ((state.model.order_bound ?? orderBound) * (ownMs + othersMs)) / 2
}

/**
 * Decides where the model is loaded. While the engines that were drained for it are there, it waits for those: the choice
 * of the moment would alternate with every request that ends, and none of the engines would ever be idle.
 */
function placeAsClaimed(
  request: PlacementRequest,
  claimed: readonly string[],
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): PlacementDecision {
  const decision = placeInPools(request, occupants, capacities)
  if (decision.do !== 'wait' || claimed.length === 0) return decision
  const others = occupants.map(other => (claimed.includes(other.engineId) ? other : { ...other, pinned: true }))
  const kept = placeInPools(request, others, capacities)
  return kept.do === 'refuse' ? decision : kept
}

/**
 * Decides whether a parked engine of the model is woken or another is started. It is woken, unless only a start needs no
 * eviction. The parked engine ends when another is started.
 */
export function placeWoken(
  state: ModelState,
  request: PlacementRequest,
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): PlacementDecision {
  const parked = parkedResident(state)
  if (!parked) return placeAsClaimed(request, state.claimed, occupants, capacities)
  const { engineId } = parked
  const others = occupants.filter(other => other.engineId !== engineId)
  const woken = placeAsClaimed(placeWaking(parked, request), state.claimed, others, capacities)
  if (woken.do === 'load' && woken.evict.length === 0) return { ...woken, wakes: engineId }
  const anew = placeAsClaimed(request, state.claimed, occupants, capacities)
  if (anew.do === 'load' && (woken.do !== 'load' || anew.evict.every(id => id === engineId)))
    return { ...anew, evict: [...new Set([...anew.evict, engineId])] }
  if (woken.do === 'load') return { ...woken, wakes: engineId }
  return woken.do === 'wait' ? woken : anew
}

/**
 * The engines that accept no more requests: first those whose requests take longer than the load or an unknown time, and
 * all of them once those are idle. Otherwise one with short requests would stand idle until a video is complete.
 */
function drained({ engines }: Reservation, occupants: readonly Occupant[], state: ModelState): string[] {
  const all = occupants.filter(({ engineId }) => engines.includes(engineId))
  const slow = all.filter(({ runMs }) => runMs === null || runMs > expectedLoadMs(state))
  return (slow.some(({ busy }) => busy) ? slow : all).map(({ engineId }) => engineId)
}

/**
 * The residents and reservations as `place` sees them. Stopping residents are left out, because their memory is already
 * booked for others. An engine that is being loaded ahead is idle. `waits`: whether requests wait for the model, which then keep an engine busy whose turn owes them.
 */
export function occupantsOf(
  residents: Iterable<Resident>,
  reservations: readonly Reservation[],
  {
    now,
    waits,
    orderBound,
    runsNext = () => 0,
  }: { now: number; waits: (state: ModelState) => boolean; orderBound: number; runsNext?: RunsNext },
): Occupant[] {
  const reserved = new Set(reservations.flatMap(({ engines }) => engines))
  const engines = [...residents]
    .filter(resident => resident.state !== 'stopping')
    .map(resident => {
      const { engineId, serves, readyAt, owed, keptUntil } = resident
      const parked = resident.state === 'parked'
      const booked = bookingNow(resident)
      const reloadMs =
        resident.parkedBytes > 0 && pays(serves)
          ? (serves.durations.wakeMs ?? expectedLoadMs(serves))
          : expectedLoadMs(serves, resident.placement.pool)
      const endsAt = readyAt === null ? 0 : readyAt + orderBound * reloadMs
      const turnUntil = owed > 0 && now < endsAt && waits(serves) ? endsAt : now < keptUntil ? keptUntil : null
      const isReserved = reserved.has(engineId)
      // It may work on: it makes room for nobody.
      const isUnreachable = resident.unreachable !== null
      return {
        engineId,
        modelId: serves.model.id + (serves.retired ? ' (before its change)' : parked ? ' (parked)' : ''),
        devices: booked.devices,
        bytes: booked.bytes,
        shares: booked.shares,
        parkedBytes: resident.parkedBytes,
        busy:
          (resident.state === 'starting' && !isAhead(resident, waits)) ||
          resident.leases > 0 ||
          isReserved ||
          isUnreachable ||
          turnUntil !== null,
        surplus: readyAt !== null && !isReserved && !isUnreachable && isSurplus(resident, runningOf(serves), reserved),
        turnSince: isReserved || isUnreachable ? null : readyAt,
        turnUntil,
        pinned: isKeptLoaded(resident),
        ...(parked && { parked, away: awayOf(serves, now) }),
        lastUsedAt: resident.lastUsedAt,
        runMs: serves.durations.runMs,
        // Parked engines are the first to end.
        reloadMs: parked ? 0 : reloadMs,
        runsNext: parked || serves.retired ? 0 : runsNext(serves.model.id),
      }
    })
  const free = reservations.flatMap(({ modelId, free }) =>
    free.map(({ device, bytes }) => ({
      engineId: `free memory for ${modelId} on ${device}`,
      modelId,
      devices: [device],
      bytes,
      busy: true,
      turnSince: null,
      turnUntil: null,
      pinned: false,
      lastUsedAt: Number.POSITIVE_INFINITY,
      runMs: null,
      reloadMs: 0,
    })),
  )
  return [...engines, ...free]
}

/**
 * Sorts the models in the order in which they are placed. Models without an engine come before all others: an engine
 * whose turn has ended would otherwise serve the older requests of its own model. Of these, what the reference order
 * began first comes first; then what has a synchronous caller or a manual load, then the longest wait.
 */
export function byUrgency(
  states: Iterable<ModelState>,
  demandOf: (state: ModelState) => Demand | undefined,
  now: number,
): ModelState[] {
  const ordered = Array.from(states, state => {
    const demand = demandOf(state)
    const [waiter] = state.loadWaiters
    const since = Math.min(demand ? now - demand.oldestWaitMs : now, waiter?.since ?? now)
    const first = waiter !== undefined || (demand?.interactive ?? 0) > 0
    const start = demand?.referenceStart ?? Number.POSITIVE_INFINITY
    return { state, since, start, first, served: servingResidents(state).length > 0 }
  })
  ordered.sort(
    (a, b) =>
      Number(a.served) - Number(b.served) ||
      (a.start === b.start ? 0 : a.start - b.start) ||
      Number(b.first) - Number(a.first) ||
      a.since - b.since,
  )
  return ordered.map(({ state }) => state)
}
