import { expect, test } from 'vitest'
import {
  amountText,
  bucketRows,
  bucketText,
  measuresIn,
  type Report,
  reportRows,
  reportWindow,
  type Sums,
  zeroOf,
} from '../../../server/console/app/pages/usage/report.ts'

const at = (text: string) => Date.parse(text) / 1_000
const zero = Object.fromEntries(
  (
    'requests jobs failed input_tokens cached_tokens output_tokens reasoning_tokens images video_seconds audio_seconds ' +
    'characters documents gpu_seconds energy_wh cost queue_seconds run_seconds'
  )
    .split(' ')
    .map(name => [name, 0]),
) as unknown as Sums

type Bucket = Report['buckets'][number]

const bucket = (start: number, results: Record<string, unknown>[]): Bucket => ({
  object: 'bucket',
  start_time: start,
  end_time: start + 86_400,
  results: results.map(
    one =>
      ({ object: 'usage.result', model_id: null, task: null, ...zero, ...one }) as unknown as Bucket['results'][number],
  ),
})

test.each([
  ['day', '2026-03-01T14:40:00Z', '2026-02-28T15:00:00Z', '1h'],
  ['week', '2026-03-01T14:40:00Z', '2026-02-23T00:00:00Z', '1d'],
  ['month', '2026-03-01T14:40:00Z', '2026-03-01T00:00:00Z', '1d'],
  ['days', '2026-03-01T14:40:00Z', '2026-01-31T00:00:00Z', '1d'],
  ['year', '2026-03-31T14:40:00Z', '2025-04-01T00:00:00Z', 'month'],
] as const)('the period %s at %s begins at %s', (period, now, start, width) => {
  expect(reportWindow(period, Date.parse(now))).toEqual({ start: at(start), width })
})

test('groups are added up over the buckets, the dearest first', () => {
  const buckets = [
    bucket(0, [
      { model_id: 'a', requests: 1, cost: 1 },
      { model_id: 'b', jobs: 2, cost: 4 },
    ]),
    bucket(86_400, [
      { model_id: 'a', requests: 3, cost: 0.5 },
      { model_id: null, requests: 1 },
    ]),
  ]
  expect(reportRows(buckets, 'model').map(({ key, sums }) => [key, sums.requests, sums.jobs, sums.cost])).toEqual([
    ['b', 0, 2, 4],
    ['a', 4, 0, 1.5],
    ['', 1, 0, 0],
  ])
})

test('a bucket that continues on the next page is one bar, and one without usage is zero', () => {
  const buckets = [bucket(0, [{ requests: 1 }]), bucket(0, [{ requests: 2 }]), bucket(86_400, [])]
  expect(bucketRows(buckets, zeroOf(zero)).map(({ key, sums }) => [key, sums.requests])).toEqual([
    ['0', 3],
    ['86400', 0],
  ])
})

test('columns that are 0 everywhere are left out, but for requests and cost', () => {
  expect(measuresIn(zero)).toEqual(['requests', 'cost'])
  expect(measuresIn({ ...zero, jobs: 1, images: 2, gpu_seconds: 3 })).toEqual([
    'requests',
    'images',
    'gpu_seconds',
    'cost',
  ])
})

test.each([
  [1_234, 'requests', '1,234'],
  [0.004, 'cost', '0.004 USD'],
  [12, 'cost', '12.00 USD'],
  [0, 'gpu_seconds', '0 s'],
  [75, 'gpu_seconds', '1 min 15 s'],
  [12.3456, 'energy_wh', '12.3 Wh'],
  [1_500, 'energy_wh', '1.50 kWh'],
] as const)('%d of %s is %s', (amount, measure, text) => {
  expect(amountText(amount, measure, 'USD')).toBe(text)
})

test.each([
  ['1h', '14:00 UTC'],
  ['1d', 'Mar 1'],
  ['month', 'Mar 2026'],
] as const)('a bucket of %s is named %s', (width, text) => {
  expect(bucketText(at('2026-03-01T14:00:00Z'), width)).toBe(text)
})
