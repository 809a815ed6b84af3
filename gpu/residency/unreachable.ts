import type { BackoffRules, StartFailures } from './backoff.ts'
import type { ModelState, Resident } from './model-state.ts'
import { startingSuccessor, successorOf } from './successor.ts'

/**
 * When another engine may be started in the place of one that cannot be reached: at once, unless such engines of its model have
 * answered again before. After each of those times later ones wait longer, until none has come for the longest back-off. Pure.
 */
export const replacementAt = (falseAlarms: StartFailures | null, now: number, { maxMs }: BackoffRules): number =>
  falseAlarms === null || now >= falseAlarms.retryAt + maxMs ? now : Math.max(now, falseAlarms.retryAt)

/** When the first engine is replaced that cannot be reached and is to be waited for until then; null if there is none. */
export function waitsForReach({ residents }: ModelState, now: number): number | null {
  const times = residents.flatMap(({ state, unreachable }) =>
    state === 'ready' && unreachable !== null && unreachable.replaceAt > now ? [unreachable.replaceAt] : [],
  )
  return times.length === 0 ? null : Math.min(...times)
}

/** Why a model waits for an engine that cannot be reached. */
export const waitsForReachText = (modelId: string): string =>
  `The engine of '${modelId}' cannot be reached. As it was only away before, another one is started a little later.`

/** Whether another engine is being started in the place of one that cannot be reached: requests wait for it. */
export const isBeingReplaced = (resident: Resident): boolean =>
  resident.unreachable !== null && startingSuccessor(resident) !== undefined

/** The engines of a model that cannot be reached and in whose place none was started. */
export const withoutReplacement = (state: ModelState): Resident[] =>
  state.residents.filter(one => one.state === 'ready' && one.unreachable !== null && successorOf(one) === undefined)

/** Those that are lost, now that this one is ready: it runs in the same pool, so that is not what cannot be reached. */
export const lostWith = ({ engineId, serves, placement }: Resident): Resident[] =>
  serves.residents.filter(
    one =>
      one.engineId !== engineId &&
      one.state === 'ready' &&
      one.unreachable !== null &&
      one.placement.pool === placement.pool,
  )

/** Why an engine ends that cannot be reached, as a sentence for callers and as the reason of its end. */
export const lostReason = 'Its machine cannot be reached, and another one serves in its place.'
export const isBackReason = 'the engine whose place it should take can be reached again'
