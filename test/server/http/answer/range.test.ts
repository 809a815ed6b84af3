import { expect, test } from 'vitest'
import { noneMatch, rangeApplies, rangeOf } from '../../../../server/http/answer/send-file.ts'

test.each([
  ['bytes=0-0', 100, { first: 0, last: 0 }],
  ['bytes=0-99', 100, { first: 0, last: 99 }],
  ['bytes=0-100', 100, { first: 0, last: 99 }],
  ['bytes=99-', 100, { first: 99, last: 99 }],
  ['bytes=50-', 100, { first: 50, last: 99 }],
  ['bytes=-1', 100, { first: 99, last: 99 }],
  ['bytes=-100', 100, { first: 0, last: 99 }],
  ['bytes=-1000', 100, { first: 0, last: 99 }],
  ['BYTES = 5 - 6', 100, { first: 5, last: 6 }],
  ['bytes=100-', 100, 'unsatisfiable'],
  ['bytes=100-200', 100, 'unsatisfiable'],
  ['bytes=-0', 100, 'unsatisfiable'],
  ['bytes=0-', 0, 'unsatisfiable'],
  ['bytes=-5', 0, 'unsatisfiable'],
  [undefined, 100, undefined],
  ['', 100, undefined],
  ['bytes=', 100, undefined],
  ['bytes=-', 100, undefined],
  ['bytes=5-4', 100, undefined],
  ['bytes=a-b', 100, undefined],
  ['bytes=0-1,5-6', 100, undefined],
  ['items=0-1', 100, undefined],
  ['bytes=0x0-0x1', 100, undefined],
  ['bytes=1e1-20', 100, undefined],
  ['bytes=--5', 100, undefined],
  [`bytes=${'9'.repeat(40)}-`, 100, undefined],
  [`bytes=0-${'9'.repeat(15)}`, 100, { first: 0, last: 99 }],
])('%s of %i bytes is %j', (header, size, range) => {
  expect(rangeOf(header, size)).toEqual(range)
})

test.each([
  [undefined, false],
  ['"a"', true],
  ['W/"a"', true],
  ['"b", W/"a"', true],
  ['*', true],
  ['"b"', false],
  ['a', false],
])('If-None-Match %s: %s', (header, matches) => {
  expect(noneMatch(header, '"a"')).toBe(matches)
})

test.each([
  [undefined, true],
  ['"a"', true],
  ['W/"a"', false],
  ['"b"', false],
  ['Sat, 21 Nov 2026 00:00:00 GMT', false],
])('If-Range %s: %s', (header, applies) => {
  expect(rangeApplies(header, '"a"')).toBe(applies)
})
