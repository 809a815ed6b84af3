import type { Log } from '../core/log.ts'
import { sameEngine } from '../core/models/change.ts'
import type { Model } from '../core/models/model.ts'
import type { Clock } from './clock.ts'
import type { FleetPools } from './fleet-pools.ts'
import type { openLoadTimes } from './load-times.ts'
import { excessOf, type openMeasuredMemory, withExcess } from './measured-memory.ts'
import { warnOfFaults } from './placement/fault-warnings.ts'
import type { Memory } from './placement/memory.ts'
import { slotsFor } from './placement/model-placement.ts'
import { keepsLayout, type ModelState, newModelState, notOffered } from './residency/model-state.ts'
import type { Residency } from './residency/residency.ts'

/**
 * Returns the function that returns the state of a model, updated to its configuration. Its memory is estimated only while it
 * has no engine, or if it is placed `anew`, as after a change. Throws Failure `model_not_found` when it is no longer offered.
 */
export function openModelSizing(options: {
  models: () => readonly Model[]
  clock: Clock
  measured: Pick<ReturnType<typeof openMeasuredMemory>, 'remembered'>
  placements: FleetPools['placements']
  memory: Pick<Memory, 'largest'>
  loadTimes: ReturnType<typeof openLoadTimes>
  residency: () => Pick<Residency, 'find' | 'upsert'>
  log: Log
}): (modelId: string, anew?: boolean) => Promise<ModelState> {
  const { models, clock, measured, placements, memory, loadTimes, residency, log } = options

  function configured(modelId: string): Model {
    const model = models().find(one => one.id === modelId)
    if (!model?.enabled) throw notOffered(modelId)
    return model
  }

  return async (modelId, anew = false) => {
    for (let model = configured(modelId); ; model = configured(modelId)) {
      const known = residency().find(modelId)
      const { planned = null } = known ?? {}
      const booked = !anew && known && keepsLayout(known) && sameEngine(known.model, model)
      const excess = excessOf(measured.remembered(model))
      const bytesEach = planned && clock.now() < planned.until ? planned.bytesEach : undefined
      const sized = await placements.placementOf(model, booked ? known.placement : undefined, { excess, bytesEach })
      const placement = booked
        ? { ...sized, estimate: known.placement.estimate }
        : withExcess(sized, excess, one => memory.largest(one))
      await loadTimes.locate(model)
      // The configuration may have changed while the files were read, or a pool has answered.
      if (configured(modelId) !== model || placements.isOutdated(placement)) continue
      warnOfFaults(log, model, placement, known?.placement)
      const state = residency().upsert(model, placement, slotsFor(model, placement.plan), anew)
      loadTimes.recall(model, state.durations)
      state.firstLoad = loadTimes.first(model, placement.bytes)
      return state
    }
  }
}

/** The state of a model that is not enabled, in which nothing can be loaded. */
export async function disabledState(
  model: Model,
  placements: Pick<FleetPools['placements'], 'placementOf'>,
): Promise<ModelState> {
  const placement = await placements.placementOf(model)
  return newModelState(model, placement, slotsFor(model, placement.plan))
}
