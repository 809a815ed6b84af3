import { requestOf, type Step } from './advance.ts'
import { liveResidents, type ModelState, type Resident, type RunsNext } from './model-state.ts'
import type { Chosen, DeviceCapacity, Occupant } from './place.ts'
import { placeInPools } from './place-in-pools.ts'

/** Whether a model that takes this step waits for memory of devices that are in use: free memory is left to it. */
export const waitsForMemory = (step: Step): boolean =>
  step.do === 'drain' ||
  step.do === 'back off' ||
  (step.do === 'wait' && !(step.pause !== undefined && step.for.length === 0))

/**
 * Decides which model is loaded before it is requested, and where: of those that running executions need next, the one that
 * most need, in memory that is free now. Nothing is evicted for it. A model is loaded ahead once until it is used or no
 * execution needs it any more; never one whose last start failed or that was unloaded by hand. Undefined if there is none.
 * Pure. `states`: the models that executions need next.
 */
export function loadAhead(
  states: readonly ModelState[],
  runsNext: RunsNext,
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): { state: ModelState; where: Chosen } | undefined {
  const candidates = states.filter(
    state =>
      state.model.enabled &&
      !state.retired &&
      !state.unloaded &&
      !state.wasLoadedAhead &&
      state.failures === null &&
      state.placement.kind !== 'none' &&
      liveResidents(state).length === 0,
  )
  candidates.sort((a, b) => runsNext(b.model.id) - runsNext(a.model.id))
  for (const state of candidates) {
    const decision = placeInPools({ ...requestOf(state, true), mayEvict: false }, occupants, capacities)
    if (decision.do === 'load' && decision.evict.length === 0) return { state, where: decision }
  }
  return undefined
}

/** Says what executions that need a model next mean for it; null if none does. */
export function upcomingText(runs: number, engine: Pick<Resident, 'ahead' | 'state'> | undefined): string | null {
  if (runs === 0) return null
  const need = runs === 1 ? 'for 1 run that needs it next' : `for ${runs} runs that need it next`
  if (!engine) return `To be loaded ahead ${need}, in memory that nobody waits for.`
  if (!engine.ahead) return `Kept ${need}: of engines that cost the same, it is unloaded last.`
  return `${engine.state === 'starting' ? 'Loading' : 'Loaded'} ahead ${need}.`
}
