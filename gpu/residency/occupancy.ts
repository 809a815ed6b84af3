import type { Chosen, DeviceCapacity, Occupant, PlacementDecision, PlacementRequest } from './place.ts'

/** Returns the bytes that are booked on a device for what is on several. */
export function shareOn(
  { devices, bytes, shares }: Pick<Occupant, 'devices' | 'bytes' | 'shares'>,
  device: string,
): number {
  const at = devices.indexOf(device)
  return at < 0 ? 0 : (shares?.[at] ?? bytes / devices.length)
}
export const bytesOn = (device: DeviceCapacity, occupants: readonly Occupant[]): number =>
  occupants.reduce((sum, other) => sum + shareOn(other, device.id), 0)
export const freeOn = (device: DeviceCapacity, occupants: readonly Occupant[]): number =>
  device.capacity - bytesOn(device, occupants)

/** The occupants of each device, by its id. */
export function byDevice(occupants: readonly Occupant[]): Map<string, Occupant[]> {
  const there = new Map<string, Occupant[]>()
  for (const other of occupants)
    for (const id of other.devices) {
      const own = there.get(id)
      if (own) own.push(other)
      else there.set(id, [other])
    }
  return there
}

/** The decision for these devices: it waits for the engines among the evicted that are busy. */
export function decide(
  { modelId, bytes }: PlacementRequest,
  used: readonly DeviceCapacity[],
  where: Chosen,
  evicted: readonly Occupant[],
): PlacementDecision {
  const engines = evicted.map(other => other.engineId)
  const busy = evicted.filter(other => other.busy)
  if (busy.length === 0) return { do: 'load', ...where, evict: engines }
  const free = used.flatMap((device, at) => {
    const missing = (where.shares?.[at] ?? bytes / used.length) - bytesOn(device, evicted)
    return missing > 0 ? [{ device: device.id, bytes: missing }] : []
  })
  return {
    do: 'wait',
    for: busy.map(other => other.engineId),
    reserve: { modelId, engines, free },
    where,
    reason: `'${modelId}' waits for the memory of ${names(busy)}.`,
  }
}

export const names = (occupants: readonly Occupant[]): string =>
  [...new Set(occupants.map(other => `'${other.modelId}'`))].join(' and ') || 'another model'
