import { expect, test } from 'vitest'
import type { Caller } from '../../../../core/accounts/accounts.ts'
import { rateHeaders } from '../../../../server/http/access/rate-headers.ts'

const caller = {
  limits: { requestsPerMinute: 100, jobsPerMinute: 0 },
  token: { originId: 'tok_1', limits: { requestsPerMinute: 10, jobsPerMinute: null } },
} as unknown as Caller
const left = (limit: number, remaining: number, resetMs = 1_000) => ({
  allowed: true,
  limit,
  remaining,
  resetMs,
  retryAfterMs: 0,
})
const none = { organization: left(0, 0), token: left(0, 0) }

test.each([
  ['the one with the least left', left(100, 50), left(10, 3), '10'],
  ['whichever that is', left(100, 2), left(10, 3), '100'],
  ['of equals the one that is full again last', left(100, 3, 9_000), left(10, 3), '100'],
  ['the only one there is', left(0, 0), left(10, 3), '10'],
  ['that of a token that created the token', left(100, 50), left(10, 3), '20', left(20, 1)],
])('the headers name the limit that refuses first: %s', (_, organization, token, limit, parent = left(0, 0)) => {
  const headers = rateHeaders('api', caller, { organization, token, parent }, none)
  expect(headers[headers.indexOf('x-ratelimit-limit-requests') + 1]).toBe(limit)
})
