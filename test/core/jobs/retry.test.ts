import { describe, expect, test } from 'vitest'
import { Failure, type FailureCode } from '../../../core/failure.ts'
import { decideRetry, pauseMs, type RetryDecision } from '../../../core/jobs/retry.ts'
import type { CrashPart } from '../../../core/jobs/suspects.ts'
import { metered } from '../../../core/usage.ts'

const now = 1_000_000
const cases: [
  rule: string,
  failure: [FailureCode, retryAfterMs?: number],
  facts: {
    crash?: CrashPart
    releases?: number
    attempt?: number
    maxAttempts?: number
    random?: number
    overrun?: boolean
  },
  RetryDecision,
][] = [
  ['no capacity is no attempt, even the last one', ['no_capacity'], { attempt: 3 }, { do: 'release', at: 0 }],
  ['nor is a warm-up', ['model_warming_up', 7000], {}, { do: 'release', at: 0 }],
  ['a full queue is no attempt', ['queue_full'], {}, { do: 'release', at: 0 }],
  ['a server that drains gives back', ['shutting_down'], { attempt: 9 }, { do: 'release', at: 0 }],
  [
    'refused again and again, it lets others go first',
    ['no_capacity'],
    { releases: 3 },
    { do: 'release', at: now + 1000 },
  ],
  ['for longer each time', ['no_capacity'], { releases: 6 }, { do: 'release', at: now + 8000 }],
  ['but for five minutes at most', ['no_capacity'], { releases: 99 }, { do: 'release', at: now + 300_000 }],
  ['and not for ever', ['no_capacity'], { releases: 100 }, { do: 'fail' }],
  ['the drains of a server do not count', ['shutting_down'], { releases: 100 }, { do: 'release', at: 0 }],
  ['a broken engine is tried again after a second', ['worker_error'], {}, { do: 'retry', at: now + 1000 }],
  ['then after two', ['worker_error'], { attempt: 2 }, { do: 'retry', at: now + 2000 }],
  ['and at most after half a minute', ['timeout'], { attempt: 20, maxAttempts: 30 }, { do: 'retry', at: now + 30_000 }],
  ['even with bad luck', ['timeout'], { attempt: 20, maxAttempts: 30, random: 1 }, { do: 'retry', at: now + 30_000 }],
  ['a quarter less at the luckiest', ['worker_error'], { attempt: 2, random: 0 }, { do: 'retry', at: now + 1500 }],
  ['a quarter more at the unluckiest', ['worker_error'], { attempt: 2, random: 1 }, { do: 'retry', at: now + 2500 }],
  ['never before the engine asked', ['worker_error', 5000], { random: 0 }, { do: 'retry', at: now + 5000 }],
  ['what ran out of its own time would again', ['timeout'], { overrun: true }, { do: 'fail' }],
  ['the last attempt was the last', ['worker_error'], { attempt: 3 }, { do: 'fail' }],
  ['one attempt means one', ['timeout'], { maxAttempts: 1 }, { do: 'fail' }],
  [
    'who ran beside others in a crash is not charged',
    ['worker_error'],
    { attempt: 3, crash: 'beside' },
    { do: 'repeat' },
  ],
  ['who ran alone in a crash is', ['worker_error'], { attempt: 3, crash: 'alone' }, { do: 'fail' }],
  ['whoever it was, its own time is over', ['timeout'], { overrun: true, crash: 'beside' }, { do: 'fail' }],
  ['a wrong request stays wrong', ['invalid_value'], {}, { do: 'fail' }],
  ['too long stays too long', ['context_length_exceeded'], {}, { do: 'fail' }],
  ['a bug of ours is not repeated', ['internal_error'], {}, { do: 'fail' }],
  ['a crash that took the server is not repeated', ['worker_crashed'], {}, { do: 'fail' }],
]

test('what no engine has got is not charged, unless its own time is over', () => {
  const failure = new Failure('worker_error', 'It cannot be reached.', { unsent: true })
  const facts = { failure, attempt: 3, maxAttempts: 3, random: 0.5, now }
  expect(decideRetry(facts)).toEqual({ do: 'repeat' })
  expect(decideRetry({ ...facts, overrun: true })).toEqual({ do: 'fail' })
})

test.each([
  [0, undefined, 0],
  [10, undefined, 10],
  [45_000, undefined, 45_000],
  [10, 5_000, 5_000],
])('a back-off of %s ms is taken as it is, but never before the %s ms of the engine', (backOffMs, retryAfterMs, ms) => {
  const failure = new Failure('worker_error', 'No.', { backOffMs, retryAfterMs })
  const decision = decideRetry({ failure, attempt: 4, maxAttempts: 9, random: 1, now })
  expect(decision).toEqual({ do: 'retry', at: now + ms })
})

describe('decideRetry', () => {
  test.each(cases)('%s', (_, [code, retryAfterMs], facts, decision) => {
    const failure = new Failure(code, 'It went wrong.', { retryAfterMs })
    expect(decideRetry({ failure, attempt: 1, maxAttempts: 3, random: 0.5, now, ...facts })).toEqual(decision)
  })
})

test.each([
  [12.4, 12],
  [0.5, 1],
  [-3, 0],
  [Number.NaN, 0],
  [Number.POSITIVE_INFINITY, 0],
  [1e300, Number.MAX_SAFE_INTEGER],
])('%s is billed as %s', (given, billed) => {
  expect(metered(given)).toBe(billed)
})

test.each<[rule: string, retryAfterMs: number | undefined, ms: number, askedByEngine?: boolean]>([
  ['a second where nothing is said', undefined, 1_000],
  ['as long as the failure says', 7_000, 7_000],
  ['a minute at most', 9_999_999, 60_000],
  ['never for nothing', 1, 100],
  ['as long as the engine itself says', 300_000, 300_000, true],
])('the jobs of a model pause %s', (_, retryAfterMs, ms, askedByEngine = false) => {
  const more = retryAfterMs === undefined ? {} : { retryAfterMs, askedByEngine }
  expect(pauseMs(new Failure('no_capacity', 'No.', more))).toBe(ms)
})
