import type { DeviceReadings } from '../../core/models/fleet.ts'

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
