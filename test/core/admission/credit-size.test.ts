import { expect, test } from 'vitest'
import { amountFor, openFor, permitsFor } from '../../../core/admission/credit-size.ts'

test.each([
  // left, limit, fronts, permits of one front
  [1_200, 1_200, 4, 75],
  [900, 1_200, 4, 37],
  [600, 1_200, 4, 0],
  [0, 1_200, 4, 0],
  [-50, 1_200, 4, 0],
  [60, 60, 4, 3],
  [10, 10, 4, 0],
  [10, 10, 1, 2],
])('of %i permits of %i a minute each of %i fronts may hold %i', (left, limit, fronts, permits) => {
  expect(permitsFor(left, limit, fronts)).toBe(permits)
})

test.each([
  // open, limit, fronts, more that one front may open
  [0, 20, 4, 2],
  [12, 20, 4, 1],
  [16, 20, 4, 0],
  [20, 20, 1, 0],
  [30, 20, 1, 0],
  [0, 1, 1, 0],
])('with %i of %i requests open each of %i fronts may open %i more', (open, limit, fronts, more) => {
  expect(openFor(open, limit, fronts)).toBe(more)
})

test.each([
  // left, limit, fronts, amount of one front
  [1_000, 1_000, 4, 62],
  [100, 1_000, 4, 6],
  [99, 1_000, 4, 0],
  [-1, 1_000, 4, 0],
  [0, 0, 4, 0],
])('with %i left of %i each of %i fronts may hold %i', (left, limit, fronts, amount) => {
  expect(amountFor(left, limit, fronts)).toBe(amount)
})
