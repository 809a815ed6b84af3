import { expect, test } from 'vitest'
import { grantLimits, grantRole, hoursText, hoursWithin } from '../../../core/accounts/grant.ts'
import { Failure } from '../../../core/failure.ts'
import { type AllowedHours, type Role, type TokenLimits, type Weekday, weekdays } from '../../../core/store/store.ts'

const none: TokenLimits = {
  requestsPerMinute: null,
  jobsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
  monthlySpendLimit: null,
  allowedHours: null,
  localOnly: false,
}
const outcome = (grant: () => unknown): string => {
  try {
    grant()
    return 'granted'
  } catch (thrown) {
    return Failure.from(thrown).param ?? Failure.from(thrown).code
  }
}
const hours = (from: string, to: string, days: Weekday[] = ['mon'], timezone = 'UTC'): AllowedHours => ({
  timezone,
  ranges: [{ days, from, to }],
})

test.each<[string, Partial<TokenLimits>, Partial<TokenLimits>, string]>([
  ['anything without limits', {}, { tokensPerMinute: null, monthlySpendLimit: 5 }, 'granted'],
  ['less', { monthlySpendLimit: 5 }, { monthlySpendLimit: 4 }, 'granted'],
  ['as much', { monthlySpendLimit: 5 }, { monthlySpendLimit: 5 }, 'granted'],
  ['nothing, which is less than something', { monthlySpendLimit: 5 }, { monthlySpendLimit: 0 }, 'granted'],
  ['more', { monthlySpendLimit: 5 }, { monthlySpendLimit: 6 }, 'monthly_spend_limit'],
  ['no limit', { monthlySpendLimit: 0 }, { monthlySpendLimit: null }, 'monthly_spend_limit'],
  ['work that stays here', { localOnly: true }, { localOnly: true }, 'granted'],
  ['work that may leave', { localOnly: true }, { localOnly: false }, 'local_only'],
  ['what is not named', { monthlySpendLimit: 5 }, {}, 'granted'],
  ['more requests', { requestsPerMinute: 5 }, { requestsPerMinute: 6 }, 'rate_limit.api'],
  ['more jobs', { jobsPerMinute: 5 }, { jobsPerMinute: null }, 'rate_limit.jobs'],
  ['more tokens', { tokensPerMinute: 5 }, { tokensPerMinute: 6 }, 'tokens_per_minute'],
  ['more at once', { concurrentRequests: 1 }, { concurrentRequests: 2 }, 'concurrent_requests'],
  ['always', { allowedHours: hours('08:00', '18:00') }, { allowedHours: null }, 'allowed_hours'],
])('limits that a token grants: %s', (_, own, wanted, expected) =>
  expect(outcome(() => grantLimits(wanted, { ...none, ...own }))).toBe(expected),
)

test.each<[string, AllowedHours, boolean]>([
  ['the same', hours('08:00', '18:00'), true],
  ['a part', hours('09:00', '10:00'), true],
  ['a minute earlier', hours('07:59', '18:00'), false],
  ['a minute later', hours('08:00', '18:01'), false],
  ['another day', hours('08:00', '18:00', ['tue']), false],
  ['one day more', hours('08:00', '18:00', ['mon', 'tue']), false],
  ['another time zone', hours('08:00', '18:00', ['mon'], 'Europe/Berlin'), false],
])('hours within monday 08:00-18:00: %s', (_, wanted, within) =>
  expect(hoursWithin(wanted, hours('08:00', '18:00'))).toBe(within),
)

test('hours of several ranges cover what lies across them, up to the end of the week', () => {
  const joined: AllowedHours = {
    timezone: 'UTC',
    ranges: [
      { days: [...weekdays], from: '00:00', to: '12:00' },
      { days: [...weekdays], from: '12:00', to: '24:00' },
    ],
  }
  expect(hoursWithin(hours('11:00', '13:00', ['sun']), joined)).toBe(true)
  expect(hoursText(hours('08:00', '18:00', ['mon', 'tue']))).toBe('mon,tue 08:00-18:00 (UTC)')
})

test.each<[Role | null, Role | null, boolean]>([
  [null, null, true],
  [null, 'owner', true],
  ['owner', 'owner', true],
  ['owner', null, true],
  ['admin', 'owner', false],
  ['admin', null, false],
  ['admin', 'admin', true],
  ['admin', 'viewer', true],
  ['member', 'admin', false],
  ['viewer', 'member', false],
])('a token of role %s may give role %s: %s', (own, role, allowed) =>
  expect(outcome(() => grantRole(role, own, 'change'))).toBe(allowed ? 'granted' : 'role_not_allowed'),
)
