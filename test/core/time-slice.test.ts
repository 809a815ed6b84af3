import { expect, test } from 'vitest'
import { inTimeSlices } from '../../core/time-slice.ts'

/** Steps that take a millisecond each, and then `end`. */
function* busy(steps: number, end: () => string): Generator<void, string> {
  for (let step = 0; step < steps; step++) {
    for (const began = performance.now(); performance.now() - began < 1; );
    yield
  }
  return end()
}

test('other work runs between the slices, and the value is returned at the end', async () => {
  let served = 0
  const serve = () => {
    served++
    if (served < 1_000) again = setImmediate(serve)
  }
  let again = setImmediate(serve)
  const value = await inTimeSlices(busy(20, () => `served ${served >= 15}`))
  clearImmediate(again)
  expect(value).toBe('served true')
})

test('work that takes no time is done at once', async () => {
  let others = false
  const soon = setImmediate(() => (others = true))
  await inTimeSlices([][Symbol.iterator](), 1_000)
  expect(others).toBe(false)
  clearImmediate(soon)
})

test('an exception in a step is thrown', async () => {
  const broken = busy(3, () => {
    throw new Error('out of flour')
  })
  await expect(inTimeSlices(broken)).rejects.toThrow('out of flour')
})
