import { describe, expect, test } from 'vitest'
import { retryAfter } from '../../../core/failure.ts'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import { addFailure, circuitState, type StartFailures } from '../../../gpu/residency/backoff.ts'
import { noDurations, untilFree } from '../../../gpu/residency/model-state.ts'

test('each failure doubles the pause, from one second to five minutes', () => {
  let failures: StartFailures | null = null
  const pauses: number[] = []
  for (let at = 0; at < 12; at++) {
    failures = addFailure(failures, `no ${at}`, 1000, defaultRules.backoff)
    pauses.push(failures.retryAt - 1000)
  }
  expect(pauses.map(ms => ms / 1000)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300])
  expect(failures).toMatchObject({ count: 12, reason: 'no 11' })
})

describe('circuitState', () => {
  const after = (count: number): StartFailures => ({ count, retryAt: 1000, reason: 'no' })
  const cases: [rule: string, failures: StartFailures | null, now: number, state: string][] = [
    ['nothing failed', null, 0, 'closed'],
    ['one failure makes it wait', after(1), 999, 'waiting'],
    ['four failures make it wait', after(4), 999, 'waiting'],
    ['the fifth opens it', after(5), 999, 'open'],
    ['the pause is over: one attempt decides', after(1), 1000, 'closed'],
    ['also when it was open', after(9), 1000, 'closed'],
  ]
  test.each(cases)('%s', (_rule, failures, now, state) =>
    expect(circuitState(failures, now, defaultRules.backoff)).toBe(state),
  )
})

test('a caller comes again after a second at the earliest and an hour at the latest', () => {
  expect(untilFree({ ...noDurations, runMs: 1000 }, 3, 2)).toBe(2000)
  expect([null, 0, 2500.2, 1e9].map(retryAfter)).toEqual([undefined, 1000, 2501, 3_600_000])
})
