import { about } from '../../core/jobs/job-progress.ts'
import { enabledAdapters } from '../../core/models/adapter.ts'
import type { Model } from '../../core/models/model.ts'
import type { Device } from '../devices/device.ts'
import { formatBytes } from '../engines/gguf/sizing.ts'
import type { ParkingLevel } from '../presets/parking-way.ts'
import type { Preset } from '../presets/preset.ts'
import type { ModelState, ParkedMemory } from '../residency/model-state.ts'
import { pays } from '../residency/parking.ts'

/** Bytes of a card that a parked engine keeps before that was measured: its CUDA context and libraries. */
const keptBytes = 1.5 * 2 ** 30
/** Bytes of the main memory for what an engine keeps without its weights. */
const bufferBytes = 2 ** 29

/** `level` null: it is not parked, for this reason, a sentence. */
export type ParkingChoice = { level: ParkingLevel; memory: ParkedMemory } | { level: null; reason: string }

/**
 * Decides whether an engine is started so that it can be parked. Pure. `cards`: those that it gets. `weights`: bytes of its
 * files. `budget`: bytes of the main memory that parked engines may use together.
 */
export function parkingChoice({
  model,
  preset,
  cards,
  weights,
  budget,
}: {
  model: Pick<Model, 'parking' | 'replicas' | 'adapters'>
  preset: Pick<Preset, 'name' | 'parking'>
  cards: readonly Pick<Device, 'cudaId' | 'isUnified'>[]
  weights: number
  budget: number
}): ParkingChoice {
  const { parking = 'off', replicas } = model
  const no = (reason: string): ParkingChoice => ({ level: null, reason })
  if (!preset.parking) return no(`The engine '${preset.name}' cannot be parked.`)
  // Not by itself: no card has shown yet that an engine which can be parked starts everywhere and serves as fast.
  if (parking === 'off') return no("It is parked only with 'parking: auto'.")
  // vLLM issues 39934 and 53888: after waking, adapters fail, or have no effect.
  if (enabledAdapters(model).length > 0) return no('It has adapters, which are lost when it is woken.')
  if (cards.length === 0) return no('Only engines on GPUs are parked.')
  if (cards.some(({ isUnified }) => isUnified))
    return no('Its GPU has no memory of its own, so nothing would be freed.')
  if (parking === 'auto' && cards.some(({ cudaId }) => cudaId === null))
    return no("By itself only on GPUs of NVIDIA. Set 'parking: 1' to try it on others.")
  if (parking === 'auto' && replicas.min > 0) return no('It is kept loaded (replicas.min).')
  const level = parking === 'auto' ? 1 : parking
  const way = preset.parking[level]
  if (!way) return no(`The engine '${preset.name}' cannot be parked with 'parking: ${level}'.`)
  const { hostFactor } = way
  const hostBytes = hostFactor === undefined ? bufferBytes : Math.round(weights * hostFactor)
  if (hostBytes > budget)
    return no(
      `It would use ${formatBytes(hostBytes)} of the main memory; parked engines may use ${formatBytes(budget)} together (limits.parking_memory).`,
    )
  return { level, memory: { hostBytes, cardBytes: keptBytes } }
}

/** What happens to an idle engine of the model that makes room for another, and why, in sentences. Pure. */
export function parkingText(choice: ParkingChoice, state: Pick<ModelState, 'durations' | 'parkingFault'>): string {
  const ends = 'When another model needs its memory, its engine ends.'
  if (choice.level === null) return `${ends} ${choice.reason}`
  if (state.parkingFault !== null) return `${ends} ${state.parkingFault}`
  const { parkMs, wakeMs, loadMs } = state.durations
  const start = loadMs === null ? '' : `, a start ${about(loadMs)}`
  const took =
    parkMs === null || wakeMs === null ? '' : ` Parking took ${about(parkMs)}, waking ${about(wakeMs)}${start}.`
  if (!pays(state)) return `${ends}${took}`
  const { hostBytes, cardBytes } = choice.memory
  return `When another model needs its memory, its engine is parked and keeps ${formatBytes(hostBytes)} of the main memory and ${formatBytes(cardBytes)} of each GPU.${took}`
}
