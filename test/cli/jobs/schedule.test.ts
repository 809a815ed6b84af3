import { expect, test } from 'vitest'
import { pollAfterMs, requestedDelayMs } from '../../../cli/jobs/follow-to-end.ts'

test('the intervals are those of the specification', () => {
  expect([0, 1, 2, 3, 4, 5, 99].map(poll => pollAfterMs(poll))).toEqual([2e3, 5e3, 1e4, 2e4, 3e4, 3e4, 3e4])
})

test.each([
  [0, 1, 2_000],
  [0, 9_000, 9_000],
  [4, 9_000, 30_000],
  [4, 90_000, 90_000],
])('poll %i, requested %i ms: %i', (poll, asked, expected) => expect(pollAfterMs(poll, asked)).toBe(expected))

test.each([
  [{}, 0],
  [{ 'retry-after': '3' }, 3_000],
  [{ 'retry-after': '3', 'retry-after-ms': '2500' }, 2_500],
  [{ 'openai-poll-after-ms': '100', 'retry-after': '3' }, 100],
  [{ 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }, 0],
  [{ 'retry-after': '-4', 'retry-after-ms': 'x' }, 0],
])('%j is %i ms', (headers, expected) => expect(requestedDelayMs(headers)).toBe(expected))
