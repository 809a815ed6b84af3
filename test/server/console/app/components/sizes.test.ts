import { expect, test } from 'vitest'
import { sizeAfterKey, withinLimits } from '../../../../../server/console/app/components/sizes.ts'

const limits = { least: 300, most: 900 }

test.each([
  ['between', 384.4, 384],
  ['too small', 20, 300],
  ['too large', 5_000, 900],
] as const)('a size is kept within its limits: %s', (_, size, expected) => {
  expect(withinLimits(size, limits)).toBe(expected)
})

test('on a screen that leaves no space the least size counts', () => {
  expect(withinLimits(500, { least: 300, most: -40 })).toBe(300)
})

test.each([
  ['ArrowLeft', 'ArrowLeft', 416],
  ['ArrowRight', 'ArrowLeft', 352],
  ['ArrowUp', 'ArrowUp', 416],
  ['ArrowDown', 'ArrowUp', 352],
  ['ArrowUp', 'ArrowLeft', undefined],
  ['Home', 'ArrowLeft', 300],
  ['End', 'ArrowUp', 900],
  ['Enter', 'ArrowLeft', undefined],
] as const)('%s on the edge of a panel that grows with %s', (key, grows, expected) => {
  expect(sizeAfterKey(key, 384, limits, grows)).toBe(expected)
})
