import { expect, test } from 'vitest'
import { traceparentOf } from '../../core/trace-context.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent = '00f067aa0ba902b7'

test.each([`00-${trace}-${parent}-01`, `00-${trace}-${parent}-00`, `cc-${trace}-${parent}-09`])('%s is valid', value =>
  expect(traceparentOf(value)).toBe(value),
)

test.each([
  undefined,
  '',
  `ff-${trace}-${parent}-01`,
  `00-${'0'.repeat(32)}-${parent}-01`,
  `00-${trace}-${'0'.repeat(16)}-01`,
  `00-${trace.toUpperCase()}-${parent}-01`,
  `00-${trace}-${parent}-01-more`,
  `00-${trace}-${parent}`,
  `00-${trace}-${parent}-01, 00-${trace}-${parent}-01`,
  `00-${trace}-${parent}-01\n`,
])('%j is ignored', value => expect(traceparentOf(value)).toBeUndefined())
