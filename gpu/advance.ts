import type { Demand } from '../core/models/fleet.ts'
import { type BackoffRules, circuitState } from './backoff.ts'
import { liveResidents, type ModelState, type Resident, shortage } from './model-state.ts'
import { type DeviceCapacity, type Occupant, place } from './place.ts'

export interface Rules {
  backoff: BackoffRules
  /**
   * Milliseconds that a model waits for memory in use by busy engines before these stop accepting requests. Shorter is
   * fairer, longer loads less often.
   */
  holdMs: number
  /** An engine that ran this many milliseconds after its start does not count as a failed start, however it ended. */
  provenMs: number
  /** Milliseconds for which models with interactive requests are loaded before a model with only background work. */
  promoteAfterMs: number
}

/** The next step for a model, after its free slots have been offered to the queue. */
export type Step =
  /** Nothing waits for it and it is not kept loaded. */
  | { do: 'nothing' }
  /** A load is in progress, or no further engine is allowed. */
  | { do: 'continue' }
  /**
   * Its starts fail: no attempt before `until`. Refuses all requests, those that would time out before then, or none.
   */
  | { do: 'back off'; until: number; refuse: 'late' | 'all' | 'none' }
  /** It cannot be placed with the current devices, configuration and pinned engines. */
  | { do: 'refuse'; reason: string; refuse: 'all' | 'none' }
  /** Its memory is in use by busy engines; decided again at `until`. */
  | { do: 'wait'; reason: string; until: number | null }
  /** It has waited for `holdMs`: the engines in `drain` accept no more requests until it is loaded. */
  | { do: 'drain'; reason: string; drain: readonly string[] }
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
  rules: Rules,
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

  const decision = place({ ...state.placement, mayEvict: !served || missing > 0 }, occupants, capacities)
  if (decision.do === 'load') return decision
  const { reason } = decision
  if (decision.do === 'refuse') return { do: 'refuse', reason, refuse: served ? 'none' : 'all' }
  if (since === null || decision.for.length === 0) return { do: 'wait', reason, until: null }
  const drainAt = since + rules.holdMs
  return now < drainAt ? { do: 'wait', reason, until: drainAt } : { do: 'drain', reason, drain: decision.for }
}

/** Start time of the longest wait for the model, for a slot or for a load; null when nothing waits for it. */
function waitingSince({ loadWaiters }: ModelState, demand: Demand | undefined, now: number): number | null {
  const load = loadWaiters[0]?.since ?? null
  if (!demand) return load
  const queued = now - demand.oldestWaitMs
  return load === null ? queued : Math.min(load, queued)
}

/**
 * The residents as `place` sees them. Stopping ones are left out, because their memory is already booked for others.
 */
export const occupantsOf = (residents: Iterable<Resident>): Occupant[] =>
  [...residents]
    .filter(resident => resident.state !== 'stopping')
    .map(resident => ({
      engineId: resident.engineId,
      modelId: resident.serves.model.id + (resident.serves.retired ? ' (before its change)' : ''),
      devices: resident.devices,
      bytes: resident.bytes,
      busy: resident.state === 'starting' || resident.leases > 0,
      pinned:
        !resident.serves.retired &&
        liveResidents(resident.serves).indexOf(resident) < resident.serves.model.replicas.min,
      lastUsedAt: resident.lastUsedAt,
    }))

/**
 * Sorts the models in the order in which they are placed: first those with interactive requests, with a manual load, or
 * whose requests have waited `promoteAfterMs`; within both groups the longest wait first.
 */
export function byUrgency(
  states: Iterable<ModelState>,
  demandOf: (state: ModelState) => Demand | undefined,
  now: number,
  { promoteAfterMs }: Pick<Rules, 'promoteAfterMs'>,
): ModelState[] {
  const ordered = Array.from(states, state => {
    const demand = demandOf(state)
    const since = waitingSince(state, demand, now) ?? now
    const first = state.loadWaiters.length > 0 || (demand?.interactive ?? 0) > 0 || now - since >= promoteAfterMs
    return { state, since, first }
  })
  ordered.sort((a, b) => Number(b.first) - Number(a.first) || a.since - b.since)
  return ordered.map(({ state }) => state)
}
