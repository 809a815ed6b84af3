import { expect, test } from 'vitest'
import { movingAverage } from '../../core/moving-average.ts'

test('the first value is the average, and each further one has a weight of a fifth', () => {
  expect(movingAverage(null, 100)).toBe(100)
  expect(movingAverage(100, 200)).toBe(120)
  expect(movingAverage(100, 50)).toBe(90)
})
