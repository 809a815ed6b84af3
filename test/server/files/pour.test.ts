import { expect, test } from 'vitest'
import { chunkBytes } from '../../../server/files/pour.ts'

test('however many read at once, what they hold together is bounded', () => {
  expect(chunkBytes(0)).toBe(256 << 10)
  expect(chunkBytes(1)).toBe(256 << 10)
  let held = 0
  // Each holds what it was given when it came, and reads no further.
  for (let reader = 1; reader <= 12_000; reader++) held += chunkBytes(reader)
  expect(held).toBeLessThan(350 << 20)
  expect(chunkBytes(12_000)).toBe(16 << 10)
})
