import { expect, test } from 'vitest'
import { parseRetryAfter } from '../../../core/retry-after.ts'
import { type AttemptReply, decide } from '../../../core/webhooks/retry.ts'

const now = Date.parse('2026-11-01T00:00:00Z')
const delays = [5_000, 300_000]
const reply = (statusCode: number, retryAfter?: string): AttemptReply => ({
  statusCode,
  retryAfter,
  body: '',
  durationMs: 1,
})
const none: AttemptReply = { statusCode: null, why: 'No answer.', durationMs: 1 }

test.each<[string, AttemptReply, number, number, object]>([
  ['200', reply(200), 1, 0.5, { outcome: 'delivered' }],
  ['204', reply(204), 3, 0.5, { outcome: 'delivered' }],
  ['500 at first', reply(500), 1, 0.5, { outcome: 'retry', nextAt: now + 5_000 }],
  ['the same with the shortest delay', reply(500), 1, 0, { outcome: 'retry', nextAt: now + 4_000 }],
  ['the same with the longest delay', reply(500), 1, 1, { outcome: 'retry', nextAt: now + 6_000 }],
  ['500 after the second attempt', reply(500), 2, 0.5, { outcome: 'retry', nextAt: now + 300_000 }],
  ['500 after the last attempt', reply(500), 3, 0.5, { outcome: 'dead', error: 'The URL answered 500.', gone: false }],
  ['no answer', none, 1, 0.5, { outcome: 'retry', error: 'No answer.' }],
  ['no answer at last', none, 3, 0.5, { outcome: 'dead', error: 'No answer.', gone: false }],
  ['404 is repeated too', reply(404), 1, 0.5, { outcome: 'retry' }],
  ['a redirect', reply(301), 1, 0.5, { outcome: 'retry', error: expect.stringContaining('not followed') }],
  ['410 at the first attempt', reply(410), 1, 0.5, { outcome: 'dead', gone: true }],
  ['a longer Retry-After', reply(429, '60'), 1, 0.5, { outcome: 'retry', nextAt: now + 60_000 }],
  ['a shorter Retry-After', reply(503, '1'), 1, 0.5, { outcome: 'retry', nextAt: now + 5_000 }],
  ['Retry-After at last', reply(503, '1'), 3, 0.5, { outcome: 'dead' }],
])('%s', (_, given, attempts, random, expected) =>
  expect(decide(given, { attempts, delays, now, random })).toMatchObject(expected),
)

test.each([
  [undefined, undefined],
  ['', undefined],
  ['soon', undefined],
  ['0', 0],
  [' 7 ', 7_000],
  ['0.5', 500],
  ['999999999', 86_400_000],
  ['Sun, 01 Nov 2026 00:02:00 GMT', 120_000],
  ['Sat, 31 Oct 2026 00:00:00 GMT', 0],
  ['Sun, 01 Nov 2099 00:00:00 GMT', 86_400_000],
])('Retry-After %j is %s ms', (header, ms) => expect(parseRetryAfter(header, now)).toBe(ms))
