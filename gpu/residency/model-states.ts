import { sameEngine } from '../../core/models/change.ts'
import type { Model } from '../../core/models/model.ts'
import { type ModelState, newModelState, notOffered, refuseLoads, replaceState } from './model-state.ts'

/**
 * The state of every model that was requested or is kept loaded, in its current configuration. `retired` is called with
 * a state that was replaced or removed.
 */
export function openModelStates({ now, retired }: { now: () => number; retired: (state: ModelState) => void }) {
  const all = new Map<string, ModelState>()

  function retire(state: ModelState): void {
    state.retired = true
    retired(state)
  }

  /**
   * Creates the state of a model, or updates it to its configuration. A change that needs another engine creates a new
   * state, which is loaded if the old one was; engines of the old state end after their requests.
   */
  function upsert(model: Model, placement: ModelState['placement'], slots: number): ModelState {
    const known = all.get(model.id)
    if (known && sameEngine(known.model, model)) return Object.assign(known, { model, placement, slots })
    const created = newModelState(model, placement, slots)
    all.set(model.id, created)
    if (known) {
      replaceState(known, created, now())
      retire(known)
    }
    return created
  }

  return {
    upsert,
    /** Removes a model that is no longer offered: refuses its waiting loads; its engines end after their requests. */
    remove(modelId: string): void {
      const state = all.get(modelId)
      if (!state) return
      all.delete(modelId)
      refuseLoads(state, () => notOffered(modelId))
      retire(state)
    },
    get: (modelId: string): ModelState | undefined => all.get(modelId),
    values: (): Iterable<ModelState> => all.values(),
    ids: (): string[] => [...all.keys()],
  }
}
