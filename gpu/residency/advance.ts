import type { Demand } from '../../core/models/fleet.ts'
import { type BackoffRules, circuitState } from './backoff.ts'
import { liveResidents, type ModelState, type Resident, shortage } from './model-state.ts'
import {
  type DeviceCapacity,
  type Occupant,
  type PlacementDecision,
  type PlacementRequest,
  place,
  type Reservation,
} from './place.ts'

export interface ResidencyRules {
  backoff: BackoffRules
  /**
   * Milliseconds for which a busy engine serves while another model waits for its memory, from the moment it was ready
   * or the other began to wait, whichever is later. Shorter is fairer, longer loads less often.
   */
  turnMs: number
  /** An engine that ran this many milliseconds after its start does not count as a failed start, however it ended. */
  provenMs: number
  /** Milliseconds for which models with interactive requests are loaded before a model with only background work. */
  promoteAfterMs: number
}

export const defaultRules: ResidencyRules = {
  backoff: { firstMs: 1_000, maxMs: 300_000, openAfter: 5 },
  turnMs: 10_000,
  provenMs: 60_000,
  promoteAfterMs: 30_000,
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
  /** Its memory is in use by busy engines; decided again at `until`. Models that are placed after it leave it `reserve`. */
  | { do: 'wait'; reason: string; until: number | null; reserve: Reservation | null }
  /** The turns of the busy engines have ended: those in `drain` accept no more requests. */
  | { do: 'drain'; reason: string; drain: readonly string[]; reserve: Reservation }
  | { do: 'load'; devices: readonly string[]; evict: readonly string[] }

/**
 * Decides whether and when a model is loaded; `place` decides where. Pure. `demand` describes its requests in the
 * queue; undefined when there are none.
 */
export function nextStep(
  state: ModelState,
  demand: Demand | undefined,
  now: number,
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
  rules: ResidencyRules,
): Step {
  const missing = shortage(state)
  const since = waitingSince(state, demand, now)
  if (since === null && missing === 0) return { do: 'nothing' }
  const live = liveResidents(state)
  if (live.some(resident => resident.state === 'starting')) return { do: 'continue' }
  const { min, max } = state.model.replicas
  if (live.length >= Math.max(min, max)) return { do: 'continue' }
  const served = live.length > 0

  const startCircuit = circuitState(state.failures, now, rules.backoff)
  if (startCircuit !== 'closed')
    return {
      do: 'back off',
      until: state.failures!.retryAt,
      refuse: served ? 'none' : startCircuit === 'open' ? 'all' : 'late',
    }

  const request = { ...state.placement, mayEvict: !served || missing > 0 }
  const decision = placeAsClaimed(request, state.claimed, occupants, capacities)
  if (decision.do === 'load') return decision
  const { reason } = decision
  if (decision.do === 'refuse') return { do: 'refuse', reason, refuse: served ? 'none' : 'all' }
  if (since === null || decision.for.length === 0) return { do: 'wait', reason, until: null, reserve: null }
  // Reserved only after a while, because until then another model may make use of the idle ones.
  const reserve = now >= since + rules.turnMs ? decision.reserve : null
  const turns = occupants.filter(({ engineId }) => decision.for.includes(engineId)).map(({ turnSince }) => turnSince)
  if (turns.includes(null)) return { do: 'wait', reason, until: null, reserve }
  const until = Math.max(since, ...turns.map(Number)) + rules.turnMs
  if (now < until) return { do: 'wait', reason, until, reserve }
  return { do: 'drain', reason, drain: drained(decision.reserve, occupants, rules), reserve: decision.reserve }
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
  const decision = place(request, occupants, capacities)
  if (decision.do !== 'wait' || claimed.length === 0) return decision
  const others = occupants.map(other => (claimed.includes(other.engineId) ? other : { ...other, pinned: true }))
  const kept = place(request, others, capacities)
  return kept.do === 'refuse' ? decision : kept
}

/**
 * The engines that accept no more requests: first those whose requests take longer than a turn or an unknown time, and
 * all of them once those are idle. Otherwise one with short requests would stand idle until a video is complete.
 */
function drained({ engines }: Reservation, occupants: readonly Occupant[], { turnMs }: ResidencyRules): string[] {
  const all = occupants.filter(({ engineId }) => engines.includes(engineId))
  const slow = all.filter(({ runMs }) => runMs === null || runMs > turnMs)
  return (slow.some(({ busy }) => busy) ? slow : all).map(({ engineId }) => engineId)
}

/**
 * Start time of the longest wait for the model, for a slot or for a load; null when nothing waits for it. The end of a
 * ready engine starts the wait anew, so that models with long queues take turns with all others.
 */
function waitingSince(
  { loadWaiters, servedUntil }: ModelState,
  demand: Demand | undefined,
  now: number,
): number | null {
  const load = loadWaiters[0]?.since
  if (load === undefined && !demand) return null
  const queued = demand ? now - demand.oldestWaitMs : Number.POSITIVE_INFINITY
  return Math.max(servedUntil, Math.min(queued, load ?? Number.POSITIVE_INFINITY))
}

/**
 * The residents and reservations as `place` sees them. Stopping residents are left out, because their memory is already
 * booked for others.
 */
export function occupantsOf(residents: Iterable<Resident>, reservations: readonly Reservation[]): Occupant[] {
  const reserved = new Set(reservations.flatMap(({ engines }) => engines))
  const engines = [...residents]
    .filter(resident => resident.state !== 'stopping')
    .map(resident => ({
      engineId: resident.engineId,
      modelId: resident.serves.model.id + (resident.serves.retired ? ' (before its change)' : ''),
      devices: resident.devices,
      bytes: resident.bytes,
      busy: resident.state === 'starting' || resident.leases > 0 || reserved.has(resident.engineId),
      turnSince: reserved.has(resident.engineId) ? null : resident.readyAt,
      pinned:
        !resident.serves.retired &&
        liveResidents(resident.serves).indexOf(resident) < resident.serves.model.replicas.min,
      lastUsedAt: resident.lastUsedAt,
      runMs: resident.serves.durations.runMs,
    }))
  const free = reservations.flatMap(({ modelId, free }) =>
    free.map(({ device, bytes }) => ({
      engineId: `free memory for ${modelId} on ${device}`,
      modelId,
      devices: [device],
      bytes,
      busy: true,
      turnSince: null,
      pinned: false,
      lastUsedAt: Number.POSITIVE_INFINITY,
      runMs: null,
    })),
  )
  return [...engines, ...free]
}

/**
 * Sorts the models in the order in which they are placed. Models without an engine come before all others: an engine
 * whose turn has ended would otherwise serve the older requests of its own model. Then models with interactive requests,
 * with a manual load, or whose requests have waited `promoteAfterMs` come first, and of equal ones the longest wait.
 */
export function byUrgency(
  states: Iterable<ModelState>,
  demandOf: (state: ModelState) => Demand | undefined,
  now: number,
  { promoteAfterMs }: Pick<ResidencyRules, 'promoteAfterMs'>,
): ModelState[] {
  const ordered = Array.from(states, state => {
    const demand = demandOf(state)
    const since = waitingSince(state, demand, now) ?? now
    const first = state.loadWaiters.length > 0 || (demand?.interactive ?? 0) > 0 || now - since >= promoteAfterMs
    return { state, since, first, served: liveResidents(state).length > 0 }
  })
  ordered.sort((a, b) => Number(a.served) - Number(b.served) || Number(b.first) - Number(a.first) || a.since - b.since)
  return ordered.map(({ state }) => state)
}
