import type { DeviceReadings, DeviceSnapshot, LeftDevice } from '../../core/models/fleet.ts'

export type DeviceKind = DeviceSnapshot['kind']

/** A device that models are placed on: a card, a MIG slice of a card, or the processor with its memory. */
export interface Device extends DeviceReadings {
  /** `gpu0`, `gpu0.1` for the second slice of a card, or `cpu`. */
  id: string
  /** The maker of a card; `gpu` where it is unknown. */
  kind: DeviceKind
  name: string
  totalBytes: number
  /** Memory used by all processes of the machine, as the driver measures it; null when it does not report it. */
  usedBytes: number | null
  /** The value of CUDA_VISIBLE_DEVICES by which a process sees only this device; null where CUDA cannot use it. */
  cudaId: string | null
  /** The same for HIP_VISIBLE_DEVICES, ZE_AFFINITY_MASK and GGML_VK_VISIBLE_DEVICES. */
  hipId?: string
  levelZeroId?: string
  vulkanId?: string
  /** Its address on the PCI bus, `0000:01:00.0`; absent where it is unknown. */
  pci?: string
  /** Whether its memory is the main memory: what engines use of either is not free for the other. */
  isUnified?: boolean
  /** The driver's UUID of a whole card, `GPU-…`; null for slices, for the processor, and when it is unknown. */
  uuid: string | null
  /** Processor cores that may be used, fractions rounded down; null for cards. */
  cores: number | null
  /** The same without the further threads of each core; absent where that is not known. */
  physicalCores?: number
  /** Bytes that all engines together may use of it, if the configuration limits them. */
  budget?: number
}

/** What is shown of a device, but for what infer knows of its use. */
export const shownDevice = ({
  id,
  kind,
  name,
  totalBytes,
  usedBytes,
  utilization,
  temperatureCelsius,
  powerWatts,
  powerLimitWatts,
}: Device): Omit<DeviceSnapshot, 'bookedBytes' | 'fault' | 'paused' | 'pool'> => ({
  id,
  kind,
  name,
  totalBytes,
  usedBytes,
  utilization,
  temperatureCelsius,
  powerWatts,
  powerLimitWatts,
})

/** What is wrong with a card, as a sentence that does not name it. */
export interface CardReport {
  id: string
  reason: string
  /** Whether programs on it cannot work any more. */
  isFatal?: boolean
}

export const noReadings: DeviceReadings = {
  utilization: null,
  temperatureCelsius: null,
  powerWatts: null,
  powerLimitWatts: null,
}

/** The cards that were found. Without a usable card `reason` says why, as a sentence. */
export interface Discovery {
  devices: Device[]
  reason: string | null
  /** True when a fault keeps existing cards from being used: worth a warning. */
  broken: boolean
  /** Further cards, which are left to others. */
  left?: readonly LeftDevice[]
  /** Cards that the driver lists and cannot use. */
  lost?: readonly CardReport[]
  /** Those among `devices` that have a fault. */
  faulty?: readonly CardReport[]
  /** Of another machine: by what its built-in engine uses the cards; null if by nothing, absent if that is not known. */
  builtInBackend?: 'cuda' | 'vulkan' | null
}

/** Share of a device that may be booked: drivers and other programs need some, and estimates are not exact. */
export const bookable = { gpu: 0.97, cpu: 0.8 }
