import { Failure } from '../core/failure.ts'
import type { Log } from '../core/log.ts'
import type { Model } from '../core/models/model.ts'
import type { Engine } from './engine.ts'
import { leastBytes } from './estimate/estimate.ts'
import type { Memory } from './placement/memory.ts'
import { type ParkingChoice, parkingChoice } from './placement/parking-choice.ts'
import { presetOf } from './presets/presets.ts'
import type { Resident } from './residency/model-state.ts'
import type { Residency } from './residency/residency.ts'

/** Parks engines and wakes them, and decides which are started so that they can be. */
export function openEngineParking(options: {
  memory: Pick<Memory, 'cardsOf' | 'ended' | 'keptByParked'>
  /** Bytes of the main memory that parked engines may use together. */
  parkingBudget: number
  /** Bytes that a parked engine of the model keeps of each card, if that was measured. */
  keptByParked: (model: Model) => number | undefined
  log: Log
  events: () => Pick<Residency, 'ready' | 'parked' | 'parkFailed'>
}) {
  const { memory, log, events } = options
  return {
    /** Decides whether an engine of the model with these bytes on these devices can be parked, by the size of its files. */
    async choose(model: Model, booked: Pick<Resident, 'devices' | 'bytes'>): Promise<ParkingChoice> {
      const weights = Math.min(booked.bytes, (await leastBytes({ ...model, memory: undefined })) || booked.bytes)
      const cards = memory.cardsOf(booked)
      const choice = parkingChoice({ model, preset: presetOf(model), cards, weights, budget: options.parkingBudget })
      const cardBytes = options.keptByParked(model)
      return choice.level === null || cardBytes === undefined
        ? choice
        : { ...choice, memory: { ...choice.memory, cardBytes } }
    },
    /** Has an engine give its memory back (`park`) or take it again (`wake`), and reports when it has. */
    async send(
      resident: Resident,
      direction: 'park' | 'wake',
      running: { engine: Engine; parking: ParkingChoice } | undefined,
    ): Promise<void> {
      const { engineId, serves } = resident
      const fields = { model: serves.model.id, engine: engineId }
      const startedAt = performance.now()
      try {
        const { engine, parking } = running!
        const { sendParking } = await import('./requests/parking.ts')
        const calls = presetOf(serves.model).parking![parking.level!]![direction]
        await sendParking(engine.endpoint()!, engine.options.headers, calls)
        const ms = Math.round(performance.now() - startedAt)
        memory.ended(resident)
        log.info(direction === 'park' ? 'Engine parked' : 'Engine woken', { ...fields, ms })
        if (direction === 'park') events().parked(engineId, ms, await memory.keptByParked(resident))
        else events().ready(engineId)
      } catch (thrown) {
        const what = direction === 'park' ? 'parked' : 'woken'
        // Callers read the reason, so it quotes no engine and no system.
        const why = thrown instanceof Failure ? thrown.message : 'The engine did not answer.'
        const reason = `It could not be ${what}. ${why}`
        const engineText = thrown instanceof Failure ? thrown.engineText : undefined
        if (resident.state !== 'stopping')
          log.warn('An engine could not be parked or woken', { ...fields, reason, engine_error: engineText }, thrown)
        events().parkFailed(engineId, reason)
      }
    },
  }
}
