import { expectedLoadMs, liveResidents, type ModelState, type Resident } from './model-state.ts'

/** A successor should be ready so many milliseconds before it must be, and as much earlier as its start may take longer. */
const marginMs = 30_000
const slowFactor = 1.5
/** Milliseconds after which it is asked again whether an engine is still used that will end soon, at least. */
const askAgainMs = 1_000

type Ending = Pick<Resident, 'endsAt' | 'readyAt' | 'lastUsedAt' | 'leases' | 'serves' | 'placement'>

/**
 * When the successor of an engine is started whose machine ends it at a known time; null if there is none. It is late enough
 * that of an engine with a short time at most two are there for half of it.
 */
export function successorAt({ endsAt, readyAt, serves, placement }: Ending): number | null {
  if (endsAt === null || readyAt === null) return null
  const needed = expectedLoadMs(serves, placement.pool) * slowFactor + marginMs
  return endsAt - Math.min(needed, Math.max(0, endsAt - readyAt) / 2)
}

/** Whether the engine would still be loaded when its time ends: it is busy, kept loaded, or used not long before. */
export function isWantedToItsEnd({ endsAt, lastUsedAt, leases, serves }: Ending): boolean {
  const { model, unloaded, retired } = serves
  if (endsAt === null || unloaded || retired || !model.enabled) return false
  return leases > 0 || model.replicas.min > 0 || model.idle_ttl === 0 || lastUsedAt + model.idle_ttl > endsAt
}

/**
 * Whether the successor of an engine should be started now, and when that is asked again: engines may be used again, or not
 * any more. Undefined where the engine has no known end, or has a successor.
 */
export function succession(resident: Resident, now: number): { isDue: boolean; askAt: number } | undefined {
  const at = resident.state === 'ready' && resident.draining === null ? successorAt(resident) : null
  if (at === null || now >= resident.endsAt! || successorOf(resident)) return undefined
  if (now < at) return { isDue: false, askAt: at }
  return { isDue: isWantedToItsEnd(resident), askAt: now + Math.max(askAgainMs, (resident.endsAt! - now) / 4) }
}

/** The engine that takes the place of this one, if it was started. */
export const successorOf = ({ successor, serves }: Resident): Resident | undefined =>
  successor === null ? undefined : liveResidents(serves).find(({ engineId }) => engineId === successor)

/** The engines of a model that end soon, are still wanted, and have no successor. */
export const withoutSuccessor = ({ residents }: Pick<ModelState, 'residents'>): Resident[] =>
  residents.filter(
    one =>
      one.isEnding &&
      one.state === 'ready' &&
      one.draining === null &&
      one.unreachable === null &&
      isWantedToItsEnd(one) &&
      successorOf(one) === undefined,
  )

/** The engine that is being started in the place of this one; undefined if there is none. */
export const startingSuccessor = (resident: Resident): Resident | undefined => {
  const own = successorOf(resident)
  return own?.state === 'starting' ? own : undefined
}

/** The engine whose place this one takes. */
export const predecessorOf = ({ engineId, serves }: Resident): Resident | undefined =>
  serves.residents.find(({ successor }) => successor === engineId)

/** Why an engine ends whose successor is ready. */
export const hasSuccessor = 'its time ends, and another engine has taken its place'
