import type { ModelState } from './residency/model-state.ts'
import type { Residency } from './residency/residency.ts'

/**
 * Returns the function that tells the residency what running executions need next, and determines the memory of those models
 * that have no engine, once for as long as they are needed: their files may have changed. One whose memory cannot be determined
 * is not loaded ahead.
 */
export function openUpcoming(
  residency: () => Pick<Residency, 'upcoming' | 'find' | 'tick'>,
  stateOf: (modelId: string) => Promise<ModelState>,
): (next: ReadonlyMap<string, number>) => void {
  let sized: ReadonlySet<string> = new Set()
  return next => {
    const before = sized
    sized = new Set(next.keys())
    residency().upcoming(next)
    const added = [...sized].filter(
      modelId => !before.has(modelId) && (residency().find(modelId)?.residents.length ?? 0) === 0,
    )
    if (added.length > 0) void Promise.allSettled(added.map(stateOf)).then(() => residency().tick())
  }
}
