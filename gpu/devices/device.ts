import type { DeviceReadings } from '../../core/models/fleet.ts'

/** One place that can hold models: a card, a slice of a card, or the processor with its memory. */
export interface Device extends DeviceReadings {
  /** `gpu0`, `gpu0.1` for the second slice of a card, or `cpu`. */
  id: string
  kind: 'nvidia' | 'cpu'
  name: string
  totalBytes: number
  /** As the driver measures it, by every process of the machine; null where it cannot say. */
  usedBytes: number | null
  /** What CUDA_VISIBLE_DEVICES must say for a process to see just this one; null for the processor. */
  cudaId: string | null
  /** The driver's UUID of a whole card, `GPU-…`; null for slices, the processor and where it is not known. */
  uuid: string | null
  /** Processor cores that may be used, fractions rounded down; null for cards. */
  cores: number | null
}

/** The readings of a device without any. */
export const noReadings: DeviceReadings = {
  utilization: null,
  temperatureCelsius: null,
  powerWatts: null,
  powerLimitWatts: null,
}

/** The cards that were found, and, where there are none or they cannot be used, why as a sentence. */
export interface Discovery {
  devices: Device[]
  reason: string | null
  /** True when there seem to be cards that a fault keeps from being used: worth a warning. */
  broken: boolean
}
