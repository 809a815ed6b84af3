import type { Model } from '../core/models/model.ts'
import type { Room } from './estimate.ts'
import type { Place, Wanted } from './place.ts'

type Where = Pick<Wanted, 'kind' | 'devices'>

/** What kind of device a model goes to, and how many of it. */
export function whereFor(model: Model, runsOn: string, devices: readonly { kind: Place['kind'] }[]): Where {
  if (runsOn === 'elsewhere') return { kind: 'none', devices: 0 }
  if (runsOn === 'cpu' || model.devices === 'cpu') return { kind: 'cpu', devices: 1 }
  const cards = devices.some(device => device.kind === 'nvidia')
  return runsOn === 'gpu' || cards ? { kind: 'nvidia', devices: model.devices } : { kind: 'cpu', devices: 1 }
}

const capacitiesOf = (kind: Where['kind'], places: readonly Place[]): number[] =>
  places.flatMap(place => (place.kind === kind ? [place.capacity] : []))

/** The devices that it may get, by the largest of them; undefined where it runs elsewhere. */
export const roomFor = ({ kind, devices }: Where, slots: number, places: readonly Place[]): Room | undefined =>
  kind === 'none' ? undefined : { kind, devices, capacity: Math.max(0, ...capacitiesOf(kind, places)), slots }

/** A model whose size nobody knows gets its cards to itself, or a quarter of the processor's memory. */
export function ofUnknownSize({ kind, devices }: Where, places: readonly Place[]): number {
  const capacities = capacitiesOf(kind, places)
  if (capacities.length === 0) return 0
  return kind === 'cpu' ? capacities[0]! / 4 : Math.min(...capacities) * devices
}
