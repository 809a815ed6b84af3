import { type BackoffRules, circuit } from './backoff.ts'
import { alive, type Line, type Resident, shortage } from './line.ts'
import { type Occupant, type Place, place } from './place.ts'

export interface Rules {
  backoff: BackoffRules
  /**
   * How long a model whose memory is busy waits before the engines there stop taking requests for its sake. Shorter
   * is fairer, longer loads less often.
   */
  holdMs: number
  /** An engine that lived this long after its start was no failure, whatever ended it. */
  provenMs: number
}

/** What comes next for a line. Free slots have been handed out before this is asked. */
export type Step =
  /** Nothing is wanted. */
  | { do: 'rest' }
  /** All that can be done is under way. */
  | { do: 'stay' }
  /** Its starts fail: not before `until`; those are refused who would wait in vain, or all. */
  | { do: 'back off'; until: number; refuse: 'late' | 'all' | 'none' }
  /** It can never be placed as things are. */
  | { do: 'refuse'; reason: string; refuse: 'all' | 'none' }
  /** Its room is busy; looked at again at `until`. */
  | { do: 'wait'; reason: string; until: number | null }
  /** Its room has been busy for so long that the engines there must let it have its turn. */
  | { do: 'take turns'; reason: string; drain: readonly string[] }
  | { do: 'load'; devices: readonly string[]; evict: readonly string[] }

/** Decides the next step of a line. Pure; `place` decides where, this decides whether and when. */
export function nextStep(
  of: Line,
  now: number,
  occupants: readonly Occupant[],
  places: readonly Place[],
  rules: Rules,
): Step {
  const short = shortage(of)
  const oldest = of.waiting[0]
  if (!oldest && short === 0) return { do: 'rest' }
  const there = alive(of)
  if (there.some(resident => resident.state === 'starting')) return { do: 'stay' }
  const { min, max } = of.model.replicas
  if (there.length >= Math.max(min, max)) return { do: 'stay' }
  const served = there.length > 0

  const gate = circuit(of.failures, now, rules.backoff)
  if (gate !== 'closed')
    return { do: 'back off', until: of.failures!.retryAt, refuse: served ? 'none' : gate === 'open' ? 'all' : 'late' }

  const decision = place({ ...of.wanted, mayEvict: !served || short > 0 }, occupants, places)
  if (decision.do === 'load') return decision
  const { reason } = decision
  if (decision.do === 'refuse') return { do: 'refuse', reason, refuse: served ? 'none' : 'all' }
  if (!oldest || decision.for.length === 0) return { do: 'wait', reason, until: null }
  const turnAt = oldest.since + rules.holdMs
  return now < turnAt ? { do: 'wait', reason, until: turnAt } : { do: 'take turns', reason, drain: decision.for }
}

/** The residents as `place` sees them. One that is leaving is not among them: its room is promised already. */
export const occupantsOf = (residents: Iterable<Resident>): Occupant[] =>
  [...residents]
    .filter(resident => resident.state !== 'stopping')
    .map(resident => ({
      engineId: resident.engineId,
      modelId: resident.line.model.id + (resident.line.retired ? ' (before its change)' : ''),
      devices: resident.devices,
      bytes: resident.bytes,
      busy: resident.state === 'starting' || resident.leases > 0,
      pinned: !resident.line.retired && alive(resident.line).indexOf(resident) < resident.line.model.replicas.min,
      lastUsedAt: resident.lastUsedAt,
    }))
