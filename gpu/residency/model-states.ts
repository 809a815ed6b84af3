import { sameEngine } from '../../core/models/change.ts'
import type { Model } from '../../core/models/model.ts'
import { liveResidents, type ModelState, newModelState, notOffered, refuseLoads } from './model-state.ts'

/**
 * Replaces the state of a model whose configuration was changed. Callers that waited for a load now wait for the new
 * engine, which is loaded if the old one was. Failures are reset, because the change may have fixed them.
 */
function replaceState(before: ModelState, after: ModelState, now: number): void {
  after.loadWaiters = before.loadWaiters.splice(0)
  after.durations = { ...before.durations }
  after.unloaded = before.unloaded
  after.engineStarts = before.engineStarts
  after.engineFailures = before.engineFailures
  if (after.loadWaiters.length === 0 && liveResidents(before).length > 0 && !before.unloaded)
    after.loadWaiters.push({ since: now, loaded() {}, refuse() {} })
}

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
   * state, which is loaded if the old one was; engines of the old state end after their requests. `anew` does the same
   * for an unchanged model, whose engines belong on other devices now.
   */
  function upsert(model: Model, placement: ModelState['placement'], slots: number, anew = false): ModelState {
    const known = all.get(model.id)
    if (known && !anew && sameEngine(known.model, model)) return Object.assign(known, { model, placement, slots })
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
