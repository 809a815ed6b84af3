import { expect, test } from 'vitest'
import { preferenceOf } from '../../../../server/http/request/prefer.ts'

const never = Number.POSITIVE_INFINITY
test.each<[string | undefined, boolean, boolean, number]>([
  [undefined, false, false, never],
  ['', false, false, never],
  ['respond-async', true, false, never],
  ['Respond-Async', true, false, never],
  ['respond-async, wait=10', true, true, 10_000],
  ['wait=10, respond-async;x=1', true, true, 10_000],
  ['wait="5"', false, true, 5_000],
  ['wait = 5', false, true, 5_000],
  ['wait=0', false, false, 0],
  ['wait', false, true, never],
  ['wait=-1', false, false, never],
  ['wait=1e9', false, false, never],
  ['wait=99999999', false, false, never],
  ['return=minimal, handling=lenient', false, false, never],
  ['not-respond-async', false, false, never],
])('Prefer: %s → asynchronous %s, waits for the answer %s, waits %i ms', (header, later, wait, waitMs) =>
  expect(preferenceOf(header)).toEqual({ later, wait, waitMs, resumeSeconds: 0 }),
)

test.each([
  ['resume=60', 60],
  ['wait=5, resume="9"', 9],
  ['resume', 0],
  ['resume=-1', 0],
])('Prefer: %s → goes on for %i s without its client', (header, seconds) =>
  expect(preferenceOf(header).resumeSeconds).toBe(seconds),
)
