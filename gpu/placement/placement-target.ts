import { engineFacts } from '../../core/models/engine-facts.ts'
import type { Model } from '../../core/models/model.ts'
import type { Device } from '../devices/device.ts'
import type { PlacementTarget } from '../estimate/estimate.ts'
import type { DeviceCapacity, PlacementRequest } from '../residency/place.ts'
import { namedCards } from './named-cards.ts'

/** The devices that a model may use. */
export type Where = Pick<PlacementRequest, 'kind' | 'devices' | 'only' | 'impossible' | 'mostDevices'>

/** The devices on which a model runs, by its settings. `runsOn`: see the preset. */
export function devicesFor(
  model: Pick<Model, 'id' | 'devices' | 'engine'>,
  runsOn: string,
  devices: readonly Device[],
): Where {
  if (runsOn === 'elsewhere') return { kind: 'none', devices: 0 }
  if (runsOn === 'cpu' || model.devices === 'cpu') return { kind: 'cpu', devices: 1 }
  const cards = devices.some(device => device.kind === 'nvidia')
  if (runsOn !== 'gpu' && !cards) return { kind: 'cpu', devices: 1 }
  if (typeof model.devices === 'number') return { kind: 'nvidia', devices: model.devices }
  if (model.devices === 'auto') {
    const found = devices.filter(({ kind }) => kind === 'nvidia')
    // A process sees one slice of a card only.
    const divides = engineFacts(model.engine).spansCards && !found.some(({ cudaId }) => cudaId?.startsWith('MIG-'))
    return { kind: 'nvidia', devices: 1, ...(divides && { mostDevices: found.length }) }
  }
  const named = namedCards(model.id, model.devices, devices)
  return 'ids' in named
    ? { kind: 'nvidia', devices: named.ids.length, only: named.ids }
    : { kind: 'nvidia', devices: 1, impossible: named.missing }
}

/** The capacities of the devices that a model may use. */
export const capacitiesOf = (
  { kind, only }: Pick<Where, 'kind' | 'only'>,
  capacities: readonly DeviceCapacity[],
): number[] =>
  capacities.flatMap(({ id, kind: own, capacity }) => (own === kind && (only?.includes(id) ?? true) ? [capacity] : []))

/** The devices that a model may get; undefined when infer starts no engine. */
export function placementTargetFor(
  { kind, devices, only, mostDevices = devices }: Where,
  slots: number,
  capacities: readonly DeviceCapacity[],
): PlacementTarget | undefined {
  if (kind === 'none') return undefined
  const cards = capacitiesOf({ kind, only }, capacities).toSorted((a, b) => b - a)
  const capacity = cards[devices - 1] ?? cards.at(-1) ?? 0
  return { kind, devices, capacity, slots, ...(kind === 'nvidia' ? { cards: cards.slice(0, mostDevices) } : {}) }
}
