import { expect, test } from 'vitest'
import { vectorText } from '../../../core/schemas/vector-text.ts'

test.each<[number, string]>([
  [0.1, '0.1'],
  [-0.25, '-0.25'],
  [0.7, '0.7'],
  [0.99999994, '0.99999994'],
  [0.00012345678, '0.00012345678'],
  [0.1234567, '0.1234567'],
  [0, '0'],
  [-0, '0'],
  [1, '1'],
  [-1, '-1'],
  [1e-7, '1.0000000116860974e-7'],
  [123.5, '123.5'],
])('%d is written as %s', (number, text) => {
  expect(vectorText(Float32Array.of(number))).toBe(`[${text}]`)
})

test('bytes are whole numbers, and an empty vector is an empty list', () => {
  expect([Int8Array.of(-128, 0, 127), Uint8Array.of(255, 7), new Float32Array()].map(vectorText)).toEqual([
    '[-128,0,127]',
    '[255,7]',
    '[]',
  ])
})

test('every float of a vector is read as the same float again, in half the bytes', () => {
  let state = 7
  const bits = Uint32Array.from(
    { length: 100_000 },
    () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0),
  )
  // Exponents of 0.00001 to 2, around the range that has a way of its own, and any exponent.
  const near = bits.map((bit, at) => (at % 4 === 0 ? bit : (bit & 0x807fffff) | ((110 + (bit % 19)) << 23)))
  const vector = new Float32Array(near.buffer).filter(Number.isFinite)
  const text = vectorText(vector)
  const read = JSON.parse(text) as number[]
  expect(read.findIndex((number, at) => !Object.is(Math.fround(number), vector[at]! || 0))).toBe(-1)
  expect(text.length).toBeLessThan(JSON.stringify(Array.from(vector)).length * 0.8)
})
