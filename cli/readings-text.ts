import type { DeviceReadings } from '../core/models/fleet.ts'

/** What the driver reports of a card, as far as it does: `87% utilization, 64 °C, 412 of 700 W`; empty without any. */
export function readingsText(readings: Partial<DeviceReadings>): string {
  const { utilization, temperatureCelsius, powerWatts, powerLimitWatts } = readings
  const limit = powerLimitWatts == null ? '' : ` of ${Math.round(powerLimitWatts)}`
  return [
    ...(utilization == null ? [] : [`${Math.round(utilization * 100)}% utilization`]),
    ...(temperatureCelsius == null ? [] : [`${Math.round(temperatureCelsius)} °C`]),
    ...(powerWatts == null ? [] : [`${Math.round(powerWatts)}${limit} W`]),
  ].join(', ')
}
