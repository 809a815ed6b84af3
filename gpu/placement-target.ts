import type { Model } from '../core/models/model.ts'
import type { PlacementTarget } from './estimate.ts'
import type { DeviceCapacity, PlacementRequest } from './place.ts'

type Where = Pick<PlacementRequest, 'kind' | 'devices'>

/** What kind of device a model goes to, and how many of it. */
export function whereFor(model: Model, runsOn: string, devices: readonly { kind: DeviceCapacity['kind'] }[]): Where {
  if (runsOn === 'elsewhere') return { kind: 'none', devices: 0 }
  if (runsOn === 'cpu' || model.devices === 'cpu') return { kind: 'cpu', devices: 1 }
  const cards = devices.some(device => device.kind === 'nvidia')
  return runsOn === 'gpu' || cards ? { kind: 'nvidia', devices: model.devices } : { kind: 'cpu', devices: 1 }
}

const capacitiesOf = (kind: Where['kind'], capacities: readonly DeviceCapacity[]): number[] =>
  capacities.flatMap(device => (device.kind === kind ? [device.capacity] : []))

/** The devices that it may get, by the largest of them; undefined where it runs elsewhere. */
export const placementTargetFor = (
  { kind, devices }: Where,
  slots: number,
  capacities: readonly DeviceCapacity[],
): PlacementTarget | undefined =>
  kind === 'none' ? undefined : { kind, devices, capacity: Math.max(0, ...capacitiesOf(kind, capacities)), slots }

/** A model whose size nobody knows gets its cards to itself, or a quarter of the processor's memory. */
export function ofUnknownSize({ kind, devices }: Where, capacities: readonly DeviceCapacity[]): number {
  const bytes = capacitiesOf(kind, capacities)
  if (bytes.length === 0) return 0
  return kind === 'cpu' ? bytes[0]! / 4 : Math.min(...bytes) * devices
}
