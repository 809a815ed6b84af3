import type { Log } from '../core/log.ts'
import type { openLoadTimes } from './load-times.ts'
import type { openMeasuredMemory } from './measured-memory.ts'
import type { Memory } from './placement/memory.ts'
import type { Resident } from './residency/model-state.ts'
import type { Residency } from './residency/residency.ts'

interface OutcomeOptions {
  log: Log
  memory: Pick<Memory, 'health'>
  measured: Pick<ReturnType<typeof openMeasuredMemory>, 'remember'>
  loadTimes: Pick<ReturnType<typeof openLoadTimes>, 'loaded' | 'loadedInPools' | 'first' | 'parked'>
  residency: () => Residency
  /** Determines the memory of a model again. */
  resize: (modelId: string) => void
  /** Called when an engine is ready, with the milliseconds that it took. */
  onLoaded?: ((modelId: string, ms: number) => void) | undefined
}

/** What is learned when an engine is ready, has run out of memory, or has failed by an error of its GPU. */
export const engineOutcomes = ({ log, memory, measured, loadTimes, residency, resize, onLoaded }: OutcomeOptions) => ({
  ranOut(resident: Resident, bytes: number, startsAgain: boolean): void {
    measured.remember(resident, bytes)
    const fields = { model: resident.serves.model.id, engine: resident.engineId, booked_bytes: Math.round(bytes) }
    log.warn(
      startsAgain
        ? 'An engine ran out of memory and is started again with more'
        : 'An engine ran out of memory, or a tensor was too large; its next layout uses less',
      fields,
    )
    if (!startsAgain) resize(resident.serves.model.id)
  },
  gpuFailed(failed: Resident): void {
    // After this event: the engines of a card with a fault are ended.
    queueMicrotask(() => {
      const ready = residency()
        .residents()
        .filter(one => one !== failed && one.state === 'ready')
      for (const id of failed.devices) {
        const works = ready.some(one => one.devices.includes(id))
        memory.health.engineFailed(id, failed.serves.model.id, { works })
      }
    })
  },
  parkingMeasured({ serves, parking }: Resident): void {
    const { parkMs, wakeMs } = serves.durations
    if (parkMs === null || wakeMs === null || parking === null) return
    loadTimes.parked(serves.model, { parkMs, wakeMs, cardBytes: parking.cardBytes })
  },
  loaded(resident: Resident, ms: number): void {
    const { model } = resident.serves
    memory.health.engineReady(resident.devices)
    loadTimes.loaded(model, resident.placement.bytes, ms)
    if (resident.placement.pool !== undefined) loadTimes.loadedInPools(model, resident.serves.durations.inPools)
    for (const state of residency().states())
      if (state.durations.loadMs === null) state.firstLoad = loadTimes.first(state.model, state.placement.bytes)
    onLoaded?.(model.id, ms)
  },
})
