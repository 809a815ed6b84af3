import { sameEngine } from '../core/models/change.ts'
import type { Model } from '../core/models/model.ts'
import { type ModelState, newModelState, notOffered, refuseLoads, replaceState } from './model-state.ts'

/**
 * The state of every model that was asked for or is kept loaded. States of removed configurations are not among them.
 * `retired` is called with a state that was replaced or removed.
 */
export function openModelStates({ now, retired }: { now: () => number; retired: (state: ModelState) => void }) {
  const all = new Map<string, ModelState>()

  function retire(state: ModelState): void {
    state.retired = true
    retired(state)
  }

  /**
   * The state of a model, made or updated to its configuration. Where that needs another engine there is a new state,
   * which is loaded if the old one was; the engines of the old one end after their requests.
   */
  function of(model: Model, wanted: ModelState['wanted'], slots: number): ModelState {
    const known = all.get(model.id)
    if (known && sameEngine(known.model, model)) return Object.assign(known, { model, wanted, slots })
    const made = newModelState(model, wanted, slots)
    all.set(model.id, made)
    if (known) {
      replaceState(known, made, now())
      retire(known)
    }
    return made
  }

  return {
    of,
    /** The model is not offered any more: waiting loads are refused, and its engines end after their requests. */
    drop(modelId: string): void {
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
