import type { Demand } from '../core/models/fleet.ts'
import { type BackoffRules, circuit } from './backoff.ts'
import { liveResidents, type ModelState, type Resident, shortage } from './model-state.ts'
import { type DeviceCapacity, type Occupant, place } from './place.ts'

export interface Rules {
  backoff: BackoffRules
  /**
   * How long a model whose memory is busy waits before the engines there stop taking requests for its sake. Shorter
   * is fairer, longer loads less often.
   */
  holdMs: number
  /** An engine that lived this long after its start was no failure, whatever ended it. */
  provenMs: number
  /** How long a model with background work alone lets models with interactive requests go first. */
  promoteAfterMs: number
}

/** What comes next for a model. Free slots have been handed out before. */
export type Step =
  /** Nothing is wanted. */
  | { do: 'rest' }
  /** All that can be done is under way. */
  | { do: 'stay' }
  /** Its starts fail: not before `until`. Refuses all requests, those whose time ends before that, or none. */
  | { do: 'back off'; until: number; refuse: 'late' | 'all' | 'none' }
  /** It can never be placed as things are. */
  | { do: 'refuse'; reason: string; refuse: 'all' | 'none' }
  /** Its room is busy; looked at again at `until`. */
  | { do: 'wait'; reason: string; until: number | null }
  /** Its room has been busy for so long that the engines there must let it have its turn. */
  | { do: 'take turns'; reason: string; drain: readonly string[] }
  | { do: 'load'; devices: readonly string[]; evict: readonly string[] }

/**
 * Decides the next step of a model: whether and when; `place` decides where. Pure. `demand` is what waits in the queue
 * for it, undefined where nothing does.
 */
export function nextStep(
  of: ModelState,
  demand: Demand | undefined,
  now: number,
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
  rules: Rules,
): Step {
  const short = shortage(of)
  const since = waitingSince(of, demand, now)
  if (since === null && short === 0) return { do: 'rest' }
  const there = liveResidents(of)
  if (there.some(resident => resident.state === 'starting')) return { do: 'stay' }
  const { min, max } = of.model.replicas
  if (there.length >= Math.max(min, max)) return { do: 'stay' }
  const served = there.length > 0

  const gate = circuit(of.failures, now, rules.backoff)
  if (gate !== 'closed')
    return { do: 'back off', until: of.failures!.retryAt, refuse: served ? 'none' : gate === 'open' ? 'all' : 'late' }

  const decision = place({ ...of.wanted, mayEvict: !served || short > 0 }, occupants, capacities)
  if (decision.do === 'load') return decision
  const { reason } = decision
  if (decision.do === 'refuse') return { do: 'refuse', reason, refuse: served ? 'none' : 'all' }
  if (since === null || decision.for.length === 0) return { do: 'wait', reason, until: null }
  const turnAt = since + rules.holdMs
  return now < turnAt ? { do: 'wait', reason, until: turnAt } : { do: 'take turns', reason, drain: decision.for }
}

/** Since when something waits for the model, in a slot's queue or for a load; null when nothing does. */
export function waitingSince({ loadWaiters }: ModelState, demand: Demand | undefined, now: number): number | null {
  const load = loadWaiters[0]?.since ?? null
  if (!demand) return load
  const queued = now - demand.oldestWaitMs
  return load === null ? queued : Math.min(load, queued)
}

/** The residents as `place` sees them. One that is leaving is not among them: its room is promised already. */
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
 * The models that want something in the order in which they are looked at: those with interactive requests or a load
 * asked for by hand first, and with them what has waited `promoteAfterMs`; of these, whoever has waited longest.
 */
export function byUrgency(
  states: Iterable<ModelState>,
  demandOf: (of: ModelState) => Demand | undefined,
  now: number,
  { promoteAfterMs }: Pick<Rules, 'promoteAfterMs'>,
): ModelState[] {
  const ordered = Array.from(states, of => {
    const demand = demandOf(of)
    const since = waitingSince(of, demand, now) ?? now
    const first = of.loadWaiters.length > 0 || (demand?.interactive ?? 0) > 0 || now - since >= promoteAfterMs
    return { of, since, first }
  })
  ordered.sort((a, b) => Number(b.first) - Number(a.first) || a.since - b.since)
  return ordered.map(({ of }) => of)
}
