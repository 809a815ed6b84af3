import { expect, test } from 'vitest'
import { preferenceOf } from '../../server/prefer.ts'

const never = Number.POSITIVE_INFINITY
test.each<[string | undefined, boolean, number]>([
  [undefined, false, never],
  ['', false, never],
  ['respond-async', true, never],
  ['Respond-Async', true, never],
  ['respond-async, wait=10', true, 10_000],
  ['wait=10, respond-async;x=1', true, 10_000],
  ['wait="5"', false, 5_000],
  ['wait = 5', false, 5_000],
  ['wait=0', false, 0],
  ['wait', false, never],
  ['wait=-1', false, never],
  ['wait=1e9', false, never],
  ['wait=99999999', false, never],
  ['return=minimal, handling=lenient', false, never],
  ['not-respond-async', false, never],
])('Prefer: %s → later %s, waits %i ms', (header, later, waitMs) =>
  expect(preferenceOf(header)).toEqual({ later, waitMs }),
)
