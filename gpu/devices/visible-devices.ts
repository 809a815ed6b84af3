import type { DeviceFiles } from '../sandbox/system.ts'
import type { Device } from './device.ts'

interface VisibilityVariable {
  name: string
  id: (device: Device) => string | null | undefined
  /** The value with which a process sees no device; absent where the driver knows none. */
  none?: string
  /** Variables without which the values have another meaning. */
  with?: Readonly<Record<string, string>>
}

const variables: readonly VisibilityVariable[] = [
  { name: 'CUDA_VISIBLE_DEVICES', id: ({ cudaId }) => cudaId, none: '' },
  // Empty is the same as unset to HIP, which then reads CUDA_VISIBLE_DEVICES.
  { name: 'HIP_VISIBLE_DEVICES', id: ({ hipId }) => hipId, none: '-1' },
  {
    name: 'ZE_AFFINITY_MASK',
    id: ({ levelZeroId }) => levelZeroId,
    with: { ZE_ENABLE_PCI_ID_DEVICE_ORDER: '1' },
  },
  { name: 'GGML_VK_VISIBLE_DEVICES', id: ({ vulkanId }) => vulkanId, none: '' },
]

/**
 * Returns the variables by which a process sees only `own` of the machine's devices. A variable for devices that this
 * machine does not have is left out: an empty CUDA_VISIBLE_DEVICES hides AMD cards too. Pure.
 */
export function visibilityVariables(all: readonly Device[], own: readonly Device[]): Record<string, string> {
  const set: Record<string, string> = {}
  for (const { name, id, none, with: also } of variables) {
    const idsOf = (devices: readonly Device[]) => devices.flatMap(device => id(device) ?? [])
    if (idsOf(all).length === 0) continue
    const value = idsOf(own).join(',') || none
    if (value !== undefined) Object.assign(set, { [name]: value }, also)
  }
  return set
}

const filesOf: Record<Device['kind'], readonly DeviceFiles[]> = {
  nvidia: ['nvidia'],
  amd: ['kfd', 'dri'],
  intel: ['dri'],
  gpu: ['dri'],
  cpu: [],
}

/** Returns the device files that an engine on these devices needs. Pure. */
export const deviceFilesOf = (devices: readonly Device[]): DeviceFiles[] => [
  ...new Set(
    devices.flatMap(({ kind, vulkanId }) => [...filesOf[kind], ...(vulkanId === undefined ? [] : ['dri' as const])]),
  ),
]
