import { expect, test } from 'vitest'
import { readAllowedHours, readMetadata } from '../../../cli/tokens/token-options.ts'

const week = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']

test.each([
  ['Mon-Fri 08:00-18:00 Europe/Berlin', 'Europe/Berlin', [[week.slice(0, 5), '08:00', '18:00']]],
  ['monday,Wed 00:00-24:00 UTC', 'UTC', [[['mon', 'wed'], '00:00', '24:00']]],
  ['sat-mon 10:00-11:00 UTC', 'UTC', [[['sat', 'sun', 'mon'], '10:00', '11:00']]],
  [
    ' Mon-Sun 08:00-12:00;  Mon-Fri,Fri 13:00-18:00  UTC',
    'UTC',
    [
      [week, '08:00', '12:00'],
      [week.slice(0, 5), '13:00', '18:00'],
    ],
  ],
])('%j is read as hours', (text, timezone, ranges) => {
  expect(readAllowedHours(text)).toEqual({
    timezone,
    ranges: ranges.map(([days, from, to]) => ({ days, from, to })),
  })
})

test.each([
  ['', 'Write it as'],
  ['Mon-Fri 08:00-18:00', 'Write it as'],
  ['08:00-18:00 UTC', 'Write it as'],
  ['Mon-Fry 08:00-18:00 UTC', "There is no day 'Fry'."],
  ['Mon-Fri 8-18 UTC', 'Write it as'],
  ['Mon 08:00-25:00 UTC', '24:00 is the end'],
  ['Mon 18:00-08:00 UTC', "'from' must be before 'to'."],
  ['Mon 08:00-18:00 Berlin', 'This is no time zone.'],
])('%j is refused as hours', (text, message) => {
  expect(() => readAllowedHours(text)).toThrow(message)
})

test('metadata is collected; its value may have the sign', () => {
  expect(readMetadata('b=x=y', readMetadata('a='))).toEqual({ a: '', b: 'x=y' })
  for (const text of ['a', '=b', `${'n'.repeat(65)}=x`]) expect(() => readMetadata(text)).toThrow()
})
