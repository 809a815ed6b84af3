import type { DeviceReadings } from '../../core/models/fleet.ts'

/** Formats a time for a table: UTC to the minute, or a dash for null. Epoch milliseconds. */
export const timeText = (at: number | null): string =>
  at === null ? '-' : `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')}Z`

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** Formats a size with about three digits: `512 MiB`. */
export function sizeText(bytes: number): string {
  let value = bytes
  let unit = 0
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** Formats a duration in seconds with its largest units: `42 s`, `3 min`, `2 h 5 min`, `4 d 1 h`. */
export function lengthText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  const [days, hours, minutes] = [
    Math.floor(whole / 86_400),
    Math.floor(whole / 3_600) % 24,
    Math.floor(whole / 60) % 60,
  ]
  if (days > 0) return hours > 0 ? `${days} d ${hours} h` : `${days} d`
  if (hours > 0) return minutes > 0 ? `${hours} h ${minutes} min` : `${hours} h`
  return minutes > 0 ? `${minutes} min` : `${whole} s`
}

/** Formats a measured duration in milliseconds: `38 ms`, `1.2 s`, `3 min`. */
export const tookText = (ms: number): string =>
  ms < 100 ? `${Math.round(ms)} ms` : ms < 9_950 ? `${(ms / 1000).toFixed(1)} s` : lengthText(ms / 1000)

/** Formats a rate: one decimal below 100, none above. */
export const rateText = (rate: number): string => (rate >= 100 ? String(Math.round(rate)) : rate.toFixed(1))

/** Formats the known readings of a GPU: `87% utilization, 64 °C, 412 of 700 W`. Empty when none is known. */
export function readingsText(readings: Partial<DeviceReadings>): string {
  const { utilization, temperatureCelsius, powerWatts, powerLimitWatts } = readings
  const limit = powerLimitWatts == null ? '' : ` of ${Math.round(powerLimitWatts)}`
  return [
    ...(utilization == null ? [] : [`${Math.round(utilization * 100)}% utilization`]),
    ...(temperatureCelsius == null ? [] : [`${Math.round(temperatureCelsius)} °C`]),
    ...(powerWatts == null ? [] : [`${Math.round(powerWatts)}${limit} W`]),
  ].join(', ')
}

/** The devices of an engine, with its memory on each if it has several. */
export const placesText = ({ devices, device_memory_bytes: bytes, pool }: Places, between = ', '): string =>
  // A cluster chooses the machine and its GPUs.
  pool && devices.some(id => id.split('/').length > 2)
    ? `${pool} (${devices.length} ${devices.length === 1 ? 'GPU' : 'GPUs'})`
    : devices.map((id, at) => (devices.length > 1 ? `${id} (${sizeText(bytes[at]!)})` : id)).join(between)

interface Places {
  devices: readonly string[]
  device_memory_bytes: readonly number[]
  pool?: string | null
}
