import { expect, test } from 'vitest'
import { readingsText } from '../../../cli/terminal/quantities-text.ts'

const all = { utilization: 0.866, temperatureCelsius: 64, powerWatts: 412.31, powerLimitWatts: 700 }

test.each([
  [all, '87% utilization, 64 °C, 412 of 700 W'],
  [{ ...all, utilization: 0, powerLimitWatts: null }, '0% utilization, 64 °C, 412 W'],
  [{ ...all, utilization: null, powerWatts: null }, '64 °C'],
  [{ powerLimitWatts: 700 }, ''],
  [{}, ''],
])('%j is "%s"', (readings, text) => {
  expect(readingsText(readings)).toBe(text)
})
