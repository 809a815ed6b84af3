import { describe, expect, test } from 'vitest'
import { type Cron, nextTime, parseCron } from '../../../core/schedule/cron.ts'
import { isTimeZone } from '../../../core/schedule/time-zone.ts'

const cronOf = (text: string): Cron => {
  const cron = parseCron(text)
  if ('fault' in cron) throw new Error(cron.fault)
  return cron
}

/** The next times, without the parts that are zero. */
function times(text: string, zone: string, after: string, count: number): string[] {
  let at = Date.parse(after)
  return Array.from({ length: count }, () => {
    at = nextTime(cronOf(text), zone, at)
    return new Date(at).toISOString().replace(/(:00)?\.000Z/, 'Z')
  })
}

describe.each<[what: string, cron: string, zone: string, after: string, times: string[]]>([
  ['every minute', '* * * * *', 'UTC', '2026-11-28T00:00:30Z', ['2026-11-28T00:01Z', '2026-11-28T00:02Z']],
  ['a time itself is not after it', '5 4 * * *', 'UTC', '2026-11-28T04:05:00Z', ['2026-11-29T04:05Z']],
  ['a millisecond before it', '5 4 * * *', 'UTC', '2026-11-28T04:04:59.999Z', ['2026-11-28T04:05Z']],
  [
    'steps and a list',
    '*/20 8,18 * * *',
    'UTC',
    '2026-11-28T08:25:00Z',
    ['2026-11-28T08:40Z', '2026-11-28T18:00Z', '2026-11-28T18:20Z'],
  ],
  ['a step from a value', '50/5 23 * * *', 'UTC', '2026-11-28T23:51:00Z', ['2026-11-28T23:55Z', '2026-11-29T23:50Z']],
  ['a range with a step', '0 8-12/2 * * *', 'UTC', '2026-11-28T09:00:00Z', ['2026-11-28T10:00Z', '2026-11-28T12:00Z']],
  ['workdays by name', '0 8 * * mon-fri', 'UTC', '2026-11-27T09:00:00Z', ['2026-11-30T08:00Z']],
  [
    'the weekend to Sunday',
    '0 8 * * sat-sun',
    'UTC',
    '2026-11-28T09:00:00Z',
    ['2026-11-29T08:00Z', '2026-12-05T08:00Z'],
  ],
  ['Sunday is 0 and 7', '0 8 * * 7', 'UTC', '2026-11-28T09:00:00Z', ['2026-11-29T08:00Z']],
  ['a month by name', '0 0 1 JAN *', 'UTC', '2026-11-28T00:00:00Z', ['2027-01-01T00:00Z', '2028-01-01T00:00Z']],
  [
    'the 31st, in months that have one',
    '0 0 31 * *',
    'UTC',
    '2026-12-31T00:00:00Z',
    ['2027-01-31T00:00Z', '2027-03-31T00:00Z'],
  ],
  ['the 29th of February', '0 0 29 2 *', 'UTC', '2096-03-01T00:00:00Z', ['2104-02-29T00:00Z']],
  [
    'either of two days',
    '0 0 13 * fri',
    'UTC',
    '2026-11-28T00:00:00Z',
    ['2026-12-04T00:00Z', '2026-12-11T00:00Z', '2026-12-13T00:00Z'],
  ],
  [
    'both days if one is any',
    '0 0 */31 2 mon',
    'UTC',
    '2026-03-01T00:00:00Z',
    ['2027-02-01T00:00Z', '2038-02-01T00:00Z'],
  ],
  ['a zone of a quarter', '0 0 * * *', 'Asia/Kathmandu', '2026-11-28T00:00:00Z', ['2026-11-28T18:15Z']],
  ['the day of the zone, not of UTC', '0 1 * * mon', 'Asia/Tokyo', '2026-11-28T00:00:00Z', ['2026-11-29T16:00Z']],
  // Berlin: 02:00 is 03:00 on 29 March, and 03:00 is 02:00 on 25 October.
  [
    'Berlin keeps its clock over the change',
    '0 18 * * *',
    'Europe/Berlin',
    '2026-03-28T00:00:00Z',
    ['2026-03-28T17:00Z', '2026-03-29T16:00Z'],
  ],
  [
    'a skipped time is the first minute after',
    '30 2 * * *',
    'Europe/Berlin',
    '2026-03-28T12:00:00Z',
    ['2026-03-29T01:00Z', '2026-03-30T00:30Z'],
  ],
  [
    'several skipped times are one',
    '*/15 2 * * *',
    'Europe/Berlin',
    '2026-03-28T12:00:00Z',
    ['2026-03-29T01:00Z', '2026-03-30T00:00Z'],
  ],
  [
    'skipped beside the time after',
    '0 2,3 * * *',
    'Europe/Berlin',
    '2026-03-28T12:00:00Z',
    ['2026-03-29T01:00Z', '2026-03-30T00:00Z'],
  ],
  [
    'each hour: a skipped one does not count',
    '30 * * * *',
    'Europe/Berlin',
    '2026-03-29T00:00:00Z',
    ['2026-03-29T00:30Z', '2026-03-29T01:30Z'],
  ],
  [
    'a doubled time is the first',
    '30 2 * * *',
    'Europe/Berlin',
    '2026-10-24T12:00:00Z',
    ['2026-10-25T00:30Z', '2026-10-26T01:30Z'],
  ],
  ['between the two it is over', '30 2 * * *', 'Europe/Berlin', '2026-10-25T00:45:00Z', ['2026-10-26T01:30Z']],
  [
    'each hour: a doubled one counts twice',
    '30 * * * *',
    'Europe/Berlin',
    '2026-10-25T00:00:00Z',
    ['2026-10-25T00:30Z', '2026-10-25T01:30Z', '2026-10-25T02:30Z'],
  ],
  // New York: 8 March and 1 November at 02:00.
  [
    'New York skips an hour',
    '15 2 * * *',
    'America/New_York',
    '2026-03-08T00:00:00Z',
    ['2026-03-08T07:00Z', '2026-03-09T06:15Z'],
  ],
  [
    'New York has one twice',
    '15 1 * * *',
    'America/New_York',
    '2026-11-01T00:00:00Z',
    ['2026-11-01T05:15Z', '2026-11-02T06:15Z'],
  ],
  // Lord Howe: half an hour on 4 October (02:00 is 02:30) and on 5 April (02:00 is 01:30).
  [
    'Lord Howe skips half an hour',
    '15 2 * * *',
    'Australia/Lord_Howe',
    '2026-10-03T00:00:00Z',
    ['2026-10-03T15:30Z', '2026-10-04T15:15Z'],
  ],
  ['the half after it is there', '45 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00:00Z', ['2026-10-03T15:45Z']],
  [
    'Lord Howe has half an hour twice',
    '45 1 * * *',
    'Australia/Lord_Howe',
    '2026-04-04T00:00:00Z',
    ['2026-04-04T14:45Z', '2026-04-05T15:15Z'],
  ],
  [
    'each hour: the half counts twice',
    '45 * * * *',
    'Australia/Lord_Howe',
    '2026-04-04T14:00:00Z',
    ['2026-04-04T14:45Z', '2026-04-04T15:15Z', '2026-04-04T16:15Z'],
  ],
  // Beirut's midnight was skipped: the day begins at 01:00.
  [
    'a day without midnight',
    '0 0 * * *',
    'Asia/Beirut',
    '2026-03-28T00:00:00Z',
    ['2026-03-28T22:00Z', '2026-03-29T21:00Z'],
  ],
  ['a day that was left out is its end', '0 12 30 12 *', 'Pacific/Apia', '2011-12-29T00:00:00Z', ['2011-12-30T10:00Z']],
])('%s', (_, cron, zone, after, expected) => {
  test(`${cron} ${zone}`, () => expect(times(cron, zone, after, expected.length)).toEqual(expected))
})

test.each([
  ['0 0 30 2 *', "'0 0 30 2 *' never comes: no month of it has a day 30."],
  ['0 0 31 4,6,9,11 *', "'0 0 31 4,6,9,11 *' never comes: no month of it has a day 31."],
  ['0 8 * *', 'has 4.'],
  ['', "'' has 0."],
  ['0 0 8 * * *', 'has 6.'],
  ['60 * * * *', "'60' is no minute: write a number from 0 to 59, a range, '*' or a list with commas."],
  ['* 24 * * *', "'24' is no hour"],
  ['* * 0 * *', "'0' is no day of the month"],
  ['* * * foo *', "'foo' is no month: write a number from 1 to 12, or a name such as feb"],
  ['* * * * 8', "'8' is no day of the week"],
  ['*/0 * * * *', "'*/0' is no minute: its step is 0."],
  ['*/00 * * * *', "'*/00' is no minute: its step is 0."],
  ['30-10 * * * *', "'30-10' is no minute: the range ends before it begins."],
  ['1--2 * * * *', "'1--2' is no minute"],
  ['1, * * * *', "'' is no minute"],
  ['-5 * * * *', "'-5' is no minute"],
  ['1.5 * * * *', "'1.5' is no minute"],
])('%j is refused: %s', (text, fault) => {
  expect(parseCron(text)).toEqual({ fault: expect.stringContaining(fault) })
})

test('a time is found in a few milliseconds, also the rarest', () => {
  const began = performance.now()
  for (const text of ['0 0 29 2 *', '0 0 */31 2 mon', '* 0-22 * * *', '59 * 31 12 *', '0 0 */29 2 6'])
    nextTime(cronOf(text), 'Europe/Berlin', Date.parse('2096-03-01T00:00:00Z'))
  expect(performance.now() - began).toBeLessThan(2_000)
})

test('the next time is after the last for every minute of two changes of the clock', () => {
  for (const text of ['*/7 * * * *', '*/7 0-3 * * *', '30 1,2 * * *'])
    for (const day of ['2026-03-29', '2026-10-25']) {
      const begin = Date.parse(`${day}T00:00:00Z`)
      let before = 0
      for (let at = begin; at < begin + 3 * 3_600_000; at += 60_000) {
        const next = nextTime(cronOf(text), 'Europe/Berlin', at)
        expect(next).toBeGreaterThan(at)
        expect(next).toBeGreaterThanOrEqual(before)
        before = next
      }
    }
})

test('time zones are known by their IANA names', () => {
  expect(['Europe/Berlin', 'UTC', 'Mars/Base', '+01:00', ''].map(isTimeZone)).toEqual([true, true, false, false, false])
})
