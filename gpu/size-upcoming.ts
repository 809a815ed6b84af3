import type { ModelState } from './residency/model-state.ts'
import type { Residency } from './residency/residency.ts'

/**
 * Tells the residency what running executions need next, and determines the memory of those models that have no engine: their
 * files may have changed. One whose memory cannot be determined is not loaded ahead.
 */
export function sizeUpcoming(
  next: ReadonlyMap<string, number>,
  residency: Pick<Residency, 'upcoming' | 'find' | 'tick'>,
  stateOf: (modelId: string) => Promise<ModelState>,
): void {
  residency.upcoming(next)
  for (const modelId of next.keys())
    if ((residency.find(modelId)?.residents.length ?? 0) === 0)
      void stateOf(modelId)
        .then(() => residency.tick())
        .catch(() => {})
}
