import { describe, expect, test } from 'vitest'
import { isAllowedAt, opensAt, outsideHours } from '../../../core/accounts/allowed-hours.ts'
import type { AllowedHours } from '../../../core/store/store.ts'

const workdays = ['mon', 'tue', 'wed', 'thu', 'fri'] as const
const office: AllowedHours = {
  timezone: 'Europe/Berlin',
  ranges: [{ days: [...workdays], from: '08:00', to: '18:00' }],
}
const nights: AllowedHours = { timezone: 'UTC', ranges: [{ days: ['fri'], from: '22:00', to: '06:00' }] }
const sundays: AllowedHours = { timezone: 'Asia/Kathmandu', ranges: [{ days: ['sun'], from: '00:00', to: '24:00' }] }
const early: AllowedHours = { timezone: 'Europe/Berlin', ranges: [{ days: ['sun'], from: '02:30', to: '05:00' }] }
const never: AllowedHours = { timezone: 'UTC', ranges: [] }

describe.each<[string, AllowedHours, at: string, allowed: boolean, next: string | null]>([
  ['a minute before the office opens', office, '2026-11-23T06:59:59Z', false, '2026-11-23T07:00:00Z'],
  ['as the office opens', office, '2026-11-23T07:00:00Z', true, '2026-11-24T07:00:00Z'],
  ['the last millisecond of the office', office, '2026-11-23T16:59:59.999Z', true, '2026-11-24T07:00:00Z'],
  ['as the office closes', office, '2026-11-23T17:00:00Z', false, '2026-11-24T07:00:00Z'],
  ['on Friday evening, until Monday', office, '2026-11-27T20:00:00Z', false, '2026-11-30T07:00:00Z'],
  ['in summer an hour earlier by UTC', office, '2026-07-01T06:00:00Z', true, '2026-07-02T06:00:00Z'],
  ['over the end of summer time', office, '2026-10-23T18:00:00Z', false, '2026-10-26T07:00:00Z'],
  ['before midnight', nights, '2026-11-27T23:59:00Z', true, '2026-12-04T22:00:00Z'],
  ['after midnight, in the range of the day before', nights, '2026-11-28T05:59:00Z', true, '2026-12-04T22:00:00Z'],
  ['at the end of a night', nights, '2026-11-28T06:00:00Z', false, '2026-12-04T22:00:00Z'],
  ['after midnight of another day', nights, '2026-11-27T05:00:00Z', false, '2026-11-27T22:00:00Z'],
  ['a whole day of a zone 5:45 before UTC', sundays, '2026-11-21T18:15:00Z', true, '2026-11-28T18:15:00Z'],
  ['a minute before it', sundays, '2026-11-21T18:14:00Z', false, '2026-11-21T18:15:00Z'],
  ['the last minute of it', sundays, '2026-11-22T18:14:00Z', true, '2026-11-28T18:15:00Z'],
  [
    'a beginning that summer time skips: the first minute after it',
    early,
    '2026-03-29T00:59:00Z',
    false,
    '2026-03-29T01:00:00Z',
  ],
  [
    'a beginning that comes twice at the end of summer time: the first',
    early,
    '2026-10-24T23:00:00Z',
    false,
    '2026-10-25T00:30:00Z',
  ],
  ['hours without any range', never, '2026-11-23T12:00:00Z', false, null],
])('%s', (_, hours, time, allowed, next) => {
  const at = Date.parse(time)

  test('is allowed or not', () => expect(isAllowedAt(hours, at)).toBe(allowed))

  test('says when it opens next', () => {
    const found = opensAt(hours, at)
    expect(found === null ? null : new Date(found).toISOString().replace('.000Z', 'Z')).toBe(next)
    if (found !== null) expect([isAllowedAt(hours, found - 60_000), isAllowedAt(hours, found)]).toEqual([false, true])
  })
})

test('the refusal names the token, its hours and when it may be used again', () => {
  const failure = outsideHours({ name: 'ci', hint: '…abcd' }, office, Date.parse('2026-11-23T20:00:00Z'))
  expect([failure.status, failure.code, failure.retryable]).toEqual([403, 'outside_allowed_hours', false])
  expect(failure.message).toBe(
    "The token 'ci' (…abcd) may be used only at its allowed hours: mon, tue, wed, thu, fri 08:00–18:00 (Europe/Berlin). It may be used again from 2026-11-24T07:00:00.000Z.",
  )
  expect(failure.facts).toEqual({ opens_at: Date.parse('2026-11-24T07:00:00Z') / 1000 })
})
