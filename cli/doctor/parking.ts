import { type Device } from '../../gpu/devices/device.ts'
import { presets } from '../../gpu/presets/presets.ts'
import type { FoundEngine } from '../models/engine-programs.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { type Finding, fine } from './finding.ts'

/** What decides which engines of this machine can be parked. */
export interface ParkingFacts {
  cards: readonly Pick<Device, 'id' | 'cudaId' | 'isUnified'>[]
  engines: readonly FoundEngine[]
  models: readonly { id: string; enabled: boolean; engine: string; parking?: 'auto' | 'off' | 1 | 2 | undefined }[]
  /** Bytes of the main memory that parked engines may use together. */
  budget: number
}

/**
 * Says which engines here can keep their weights in the main memory while another model has the GPU, and what is missing.
 * Undefined on a machine without a card. Nothing is wrong where none can. Pure.
 */
export function checkParking({ cards, engines, models, budget }: ParkingFacts): Finding | undefined {
  const name = 'parking'
  if (cards.length === 0) return undefined
  const own = cards.filter(({ isUnified }) => !isUnified)
  if (own.length === 0)
    return fine(name, 'engines are not parked: the memory of the GPU is that of the machine, so nothing would be freed')
  const kinds = [...presets.values()].filter(({ parking }) => parking).map(preset => preset.name)
  const able = kinds.filter(kind => engines.some(({ engine, path }) => engine === kind && path !== undefined))
  if (able.length === 0)
    return fine(name, `no engine here can be parked: ${kinds.join(' and ')} can, and none of them is installed`)
  if (budget === 0) return fine(name, `${able.join(' and ')} could be parked, but limits.parking_memory is 0`)
  const set = models.filter(one => one.enabled && kinds.includes(one.engine) && (one.parking ?? 'off') !== 'off')
  const setting = own.some(({ cudaId }) => cudaId !== null) ? 'parking: auto' : 'parking: 1'
  const who =
    set.length > 0 ? `set for ${set.map(({ id }) => id).join(', ')}` : `no model sets it ('${setting}' in infer.yaml)`
  return fine(name, `${able.join(' and ')} can be parked, with ${sizeText(budget)} of main memory together; ${who}`)
}
