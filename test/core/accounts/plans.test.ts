import { expect, test } from 'vitest'
import { effectiveLimits, openPlans } from '../../../core/accounts/plans.ts'
import { parseConfig } from '../../../core/models/config.ts'
import { keptLog } from '../store/_store.ts'
import { noOwnLimits } from './_caller.ts'

test.each([
  ['free', 60, 10, 1],
  ['pro', 600, 100, 2],
  ['enterprise', 6_000, 1_000, 4],
])('plan %s: %i API requests and %i job submissions a minute, share %i', (name, requests, jobs, share) => {
  expect(openPlans({ configured: {}, log: keptLog().log }).of(name)).toMatchObject({
    requestsPerMinute: requests,
    jobsPerMinute: jobs,
    share,
    concurrentRequests: 0,
    monthlySpendLimit: null,
    localOnly: false,
  })
})

const configured = parseConfig(
  `
plans:
  pro: { jobs_per_minute: 150 }
  team:
    requests_per_minute: 1200
    tokens_per_minute: 50000
    concurrent_requests: 20
    pending_jobs: 1000
    stored_bytes: 50GiB
    uploads_per_day: 500
    monthly_spend_limit: 12.5
    share: 3
`,
  'infer.yaml',
).plans

test('a configured plan has what it names; a built-in one keeps the rest of its figures, another has no other limit', () => {
  const plans = openPlans({ configured, log: keptLog().log })
  expect(plans.names()).toEqual(['free', 'pro', 'enterprise', 'team'])
  expect(plans.of('pro')).toMatchObject({ requestsPerMinute: 600, jobsPerMinute: 150, share: 2 })
  expect(plans.of('team')).toEqual({
    requestsPerMinute: 1200,
    jobsPerMinute: 0,
    tokensPerMinute: 50_000,
    concurrentRequests: 20,
    pendingJobs: 1000,
    storedBytes: 50 * 2 ** 30,
    uploadsPerDay: 500,
    monthlySpendLimit: 12_500_000,
    localOnly: false,
    share: 3,
  })
})

test('figures of an organization replace those of its plan, one by one; 0 is a figure', () => {
  const plan = openPlans({ configured, log: keptLog().log }).of('team')
  const own = { ...noOwnLimits, requestsPerMinute: 0, storedBytes: 7, monthlySpendLimit: 0 }
  expect(effectiveLimits(plan, own)).toMatchObject({
    requestsPerMinute: 0,
    concurrentRequests: 20,
    storedBytes: 7,
    monthlySpendLimit: 0,
    localOnly: false,
  })
  expect(effectiveLimits(plan, noOwnLimits).monthlySpendLimit).toBe(12_500_000)
})

test('a plan that does not exist has the limits of the smallest one, and is logged once per configuration', () => {
  const { log, lines } = keptLog()
  const plans = openPlans({ configured, log })
  expect(plans.replace({})).toEqual(['pro', 'team'])
  for (let at = 0; at < 3; at++) expect(plans.of('team')).toEqual(plans.of('free'))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('"plan":"team"')
  plans.replace(configured)
  expect(plans.of('team').share).toBe(3)
  expect(lines).toHaveLength(1)
})

test.each([
  ['plans: { Team: {} }', /infer.yaml:1:10: .*team-large/],
  ['plans: { team: { share: 0 } }', /share/],
  ['plans: { team: { requests_per_minute: -1 } }', /requests_per_minute/],
  ['plans: { team: { request_per_minute: 1 } }', /Did you mean 'requests_per_minute'/],
])('%s is refused with its place', (text, message) => {
  expect(() => parseConfig(text, 'infer.yaml')).toThrow(message)
})
