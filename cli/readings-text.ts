import type { DeviceReadings } from '../core/models/fleet.ts'

/** Formats the readings of a card that are known: `87% utilization, 64 °C, 412 of 700 W`. Empty when none is. */
export function readingsText(readings: Partial<DeviceReadings>): string {
  const { utilization, temperatureCelsius, powerWatts, powerLimitWatts } = readings
  const limit = powerLimitWatts == null ? '' : ` of ${Math.round(powerLimitWatts)}`
  return [
    ...(utilization == null ? [] : [`${Math.round(utilization * 100)}% utilization`]),
    ...(temperatureCelsius == null ? [] : [`${Math.round(temperatureCelsius)} °C`]),
    ...(powerWatts == null ? [] : [`${Math.round(powerWatts)}${limit} W`]),
  ].join(', ')
}
