import { expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { pauseRequested, requestedPauseMs } from '../../../gpu/requests/pause.ts'

const now = Date.parse('2026-11-01T00:00:00Z')

test.each<[rule: string, status: number, headers: Record<string, string>, body: string, ms: number]>([
  ['seconds', 429, { 'retry-after': '20' }, '', 20_000],
  ['a date', 503, { 'retry-after': 'Sun, 01 Nov 2026 00:00:07 GMT' }, '', 7_000],
  ['milliseconds come first', 529, { 'retry-after': '20', 'retry-after-ms': '1500.4' }, '', 1_501],
  ['what is no number is ignored', 429, { 'retry-after': '20', 'retry-after-ms': 'soon' }, '', 20_000],
  ['a detail of the body', 429, {}, '{"error":{"details":[{"retryDelay": "17.5s"}]}}', 17_500],
  ['ten minutes at most', 429, { 'retry-after': '86400' }, '', 600_000],
  ['no time is no pause', 429, {}, '{}', 0],
  ['nor is a time that has passed', 429, { 'retry-after': '0' }, '', 0],
  ['an error of the caller is no pause', 400, { 'retry-after': '20' }, '', 0],
])('%s', (_, status, headers, body, ms) => expect(requestedPauseMs(status, headers, body, now)).toBe(ms))

test.each([
  ['a spent quota returns when the engine says', 'worker_error', 'no_capacity'],
  ['a full engine', 'no_capacity', 'no_capacity'],
  ['an engine that loads', 'model_warming_up', 'model_warming_up'],
] as const)('%s', (_, before, after) => {
  const failure = pauseRequested(new Failure(before, 'No.', { engineText: 'Slow down.' }), 'm', 20_000)
  expect(failure).toMatchObject({ code: after, retryAfterMs: 20_000, askedByEngine: true, engineText: 'Slow down.' })
})
