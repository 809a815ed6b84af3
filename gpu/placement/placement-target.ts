import type { Model } from '../../core/models/model.ts'
import type { PlacementTarget } from '../estimate/estimate.ts'
import type { DeviceCapacity, PlacementRequest } from '../residency/place.ts'

type Where = Pick<PlacementRequest, 'kind' | 'devices'>

/** The kind of device that a model is placed on, and how many of them. */
export function devicesFor(model: Model, runsOn: string, devices: readonly { kind: DeviceCapacity['kind'] }[]): Where {
  if (runsOn === 'elsewhere') return { kind: 'none', devices: 0 }
  if (runsOn === 'cpu' || model.devices === 'cpu') return { kind: 'cpu', devices: 1 }
  const cards = devices.some(device => device.kind === 'nvidia')
  return runsOn === 'gpu' || cards ? { kind: 'nvidia', devices: model.devices } : { kind: 'cpu', devices: 1 }
}

const capacitiesOf = (kind: Where['kind'], capacities: readonly DeviceCapacity[]): number[] =>
  capacities.flatMap(device => (device.kind === kind ? [device.capacity] : []))

/**
 * The devices that a model may get, with the capacity of the largest; undefined when infer does not start its engine.
 */
export const placementTargetFor = (
  { kind, devices }: Where,
  slots: number,
  capacities: readonly DeviceCapacity[],
): PlacementTarget | undefined =>
  kind === 'none' ? undefined : { kind, devices, capacity: Math.max(0, ...capacitiesOf(kind, capacities)), slots }

/** Bytes to book for a model of unknown size: all of its cards, or a quarter of the processor's memory. */
export function bytesOfUnknown({ kind, devices }: Where, capacities: readonly DeviceCapacity[]): number {
  const bytes = capacitiesOf(kind, capacities)
  if (bytes.length === 0) return 0
  return kind === 'cpu' ? bytes[0]! / 4 : Math.min(...bytes) * devices
}
