import type { DeviceCapacity, Occupant } from './place.ts'

/** Returns these devices and those that share memory with one of them: a card with unified memory and the processor. */
export function withSharing(devices: readonly string[], capacities: readonly DeviceCapacity[]): readonly string[] {
  const others = capacities.filter(({ sharesWith }) => sharesWith?.some(id => devices.includes(id)))
  return others.length === 0 ? devices : [...new Set([...devices, ...others.map(({ id }) => id)])]
}

/** Whether what is on these devices uses memory of those. */
export const isOnSameMemory = (
  one: readonly string[],
  other: readonly string[],
  capacities: readonly DeviceCapacity[],
): boolean => withSharing(one, capacities).some(id => other.includes(id))

/** Returns the occupants with the same bytes also on the devices that share memory with theirs. */
export function onSharedMemory(
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): readonly Occupant[] {
  if (!capacities.some(({ sharesWith }) => sharesWith)) return occupants
  return occupants.map(one => {
    const devices = withSharing(one.devices, capacities)
    return { ...one, devices, bytes: (one.bytes * devices.length) / Math.max(1, one.devices.length) }
  })
}
