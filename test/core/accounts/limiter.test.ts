import { afterEach, describe, expect, test, vi } from 'vitest'
import { openAddressLimiter, openLimiter } from '../../../core/accounts/limiter.ts'
import { limitedCaller } from './_caller.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('the limit per minute is also the burst, and it refills evenly', () => {
  let now = 0
  const limiter = openLimiter(() => now)
  const caller = limitedCaller({ jobsPerMinute: 60 })
  const take = () => limiter.enter(caller, 'jobs').organization
  for (let i = 0; i < 60; i++) expect(take().allowed).toBe(true)
  expect(take()).toMatchObject({ allowed: false, limit: 60, remaining: 0, retryAfterMs: 1000 })
  now += 999
  expect(take()).toMatchObject({ allowed: false, retryAfterMs: 1 })
  now += 1
  expect(take().allowed).toBe(true)
  now += 3_600_000
  expect(take()).toMatchObject({ allowed: true, remaining: 59 })
})

test('organizations and buckets are separate, and 0 is unlimited', () => {
  const limiter = openLimiter(() => 0)
  const [a, b] = ['a', 'b'].map(organizationId =>
    limitedCaller({ requestsPerMinute: 1, jobsPerMinute: 1 }, {}, { organizationId }),
  )
  const isRefused = (...request: Parameters<typeof limiter.enter>) => limiter.enter(...request).refused !== undefined
  expect(isRefused(a!, 'api')).toBe(false)
  expect(isRefused(a!, 'api')).toBe(true)
  expect(isRefused(a!, 'jobs')).toBe(false)
  expect(isRefused(b!, 'api')).toBe(false)
  const unlimited = limitedCaller({}, {}, { organizationId: 'a' })
  for (let i = 0; i < 1000; i++) expect(isRefused(unlimited, 'api')).toBe(false)
})

test.each([-3_600_000, 86_400_000])('a wall clock set by %i ms neither grants nor takes permits', by => {
  const limiter = openLimiter()
  const caller = limitedCaller({ requestsPerMinute: 2, concurrentRequests: 1 })
  for (let i = 0; i < 2; i++) limiter.enter(caller, 'api')
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + by })
  expect(limiter.enter(caller, 'api').refused?.code).toBe('rate_limit')
})

test('a clock that goes back neither grants nor takes permits', () => {
  let now = 100_000
  const limiter = openLimiter(() => now)
  const caller = limitedCaller({ requestsPerMinute: 2 })
  for (let i = 0; i < 2; i++) limiter.enter(caller, 'api')
  now -= 50_000
  expect(limiter.enter(caller, 'api').refused).toBeDefined()
})

test('tokens that one token has created share its limits with it, per minute and at a time', () => {
  let now = 0
  const limiter = openLimiter(() => now)
  const own = { requestsPerMinute: 10, jobsPerMinute: 3, concurrentRequests: 2 }
  const parent = limitedCaller({}, own, { tokenId: 'tok_parent' })
  const children = Array.from({ length: 10 }, (_, at) =>
    limitedCaller({}, at % 2 ? own : {}, { tokenId: `tok_${at}`, parents: [['tok_parent', own]] }),
  )
  const sent = [...children, ...children, parent].map(caller => limiter.enter(caller, 'api').refused)
  expect(sent.filter(refused => !refused)).toHaveLength(10)
  expect(sent[15]).toMatchObject({
    message: "The token 'tok_parent' may send 10 requests a minute. Wait 6 s.",
    facts: { limit: 'requests_per_minute', limit_of: 'token' },
  })
  now += 6_000
  expect(limiter.look(children[0]!, 'api').parent).toMatchObject({ limit: 10, remaining: 1 })
  expect(limiter.enter(children[0]!, 'api').refused).toBeUndefined()
  const [first, second, third] = children.slice(0, 3).map(caller => limiter.enter(caller, 'jobs'))
  expect([first!.refused, second!.refused]).toEqual([undefined, undefined])
  expect(third!.refused?.message).toContain("The token 'tok_parent' has 2 requests open")
  first!.leave()
  expect(limiter.enter(children[4]!, 'jobs').refused).toBeUndefined()
  expect(limiter.openRequests('tok_parent')).toBe(2)
})

describe('a token and its organization', () => {
  test('both have limits: what the one refuses costs the other nothing', () => {
    const limiter = openLimiter(() => 0)
    const strict = limitedCaller({ requestsPerMinute: 3 }, { requestsPerMinute: 1 })
    expect(limiter.enter(strict, 'api').refused).toBeUndefined()
    for (let i = 0; i < 5; i++) {
      const { refused, organization } = limiter.enter(strict, 'api')
      expect(refused?.message).toBe("The token 'tok_1' may send 1 requests a minute. Wait 60 s.")
      expect(refused?.facts).toEqual({ limit: 'requests_per_minute', limit_of: 'token' })
      expect(organization.remaining).toBe(2)
    }
    const other = limitedCaller({ requestsPerMinute: 3 }, { requestsPerMinute: 5 }, { tokenId: 'tok_2' })
    expect([0, 1, 2].map(() => limiter.enter(other, 'api').refused?.facts?.limit_of)).toEqual([
      undefined,
      undefined,
      'organization',
    ])
    expect(limiter.look(other, 'api').token.remaining).toBe(3)
  })

  test('a rotated token continues the limits of the token before it', () => {
    const limiter = openLimiter(() => 0)
    const before = limitedCaller({}, { jobsPerMinute: 1 })
    const after = limitedCaller({}, { jobsPerMinute: 1 }, { tokenId: 'tok_2', originId: 'tok_1' })
    expect(limiter.enter(before, 'jobs').refused).toBeUndefined()
    expect(limiter.enter(after, 'jobs').refused?.code).toBe('rate_limit')
  })

  test('a look counts nothing', () => {
    const limiter = openLimiter(() => 0)
    const caller = limitedCaller({ requestsPerMinute: 1 }, { requestsPerMinute: 1 })
    for (let i = 0; i < 5; i++)
      expect(limiter.look(caller, 'api')).toMatchObject({ refused: undefined, organization: { remaining: 1 } })
    expect(limiter.enter(caller, 'api').refused).toBeUndefined()
  })
})

describe('concurrent requests', () => {
  const ofOrganization = limitedCaller({ concurrentRequests: 2, jobsPerMinute: 10 })

  test('count from their beginning to their end, and a refused one counts as nothing', () => {
    const limiter = openLimiter(() => 0)
    const [first] = [limiter.enter(ofOrganization, 'jobs'), limiter.enter(ofOrganization, 'jobs')]
    for (let i = 0; i < 5; i++) {
      const { refused, leave } = limiter.enter(ofOrganization, 'jobs')
      leave()
      expect(refused).toMatchObject({
        code: 'rate_limit',
        retryAfterMs: 1000,
        facts: { limit: 'concurrent_requests', limit_of: 'organization' },
        message:
          "The organization 'org_1' has 2 requests open, which is its limit of concurrent requests. Send this one when another has ended, or submit it as a job.",
      })
    }
    first.leave()
    const next = limiter.enter(ofOrganization, 'jobs')
    expect([next.refused, next.organization.remaining]).toEqual([undefined, 7])
  })

  test('API requests do not count', () => {
    const limiter = openLimiter(() => 0)
    const caller = limitedCaller({ concurrentRequests: 1 }, { concurrentRequests: 1 })
    for (let i = 0; i < 5; i++) expect(limiter.enter(caller, 'api').refused).toBeUndefined()
  })

  test('of a token and of its organization are counted separately', () => {
    const limiter = openLimiter(() => 0)
    const caller = limitedCaller({ concurrentRequests: 2 }, { concurrentRequests: 1 })
    const other = limitedCaller({ concurrentRequests: 2 }, { concurrentRequests: 2 }, { tokenId: 'tok_2' })
    const first = limiter.enter(caller, 'jobs')
    expect(limiter.enter(caller, 'jobs').refused?.facts?.limit_of).toBe('token')
    expect(limiter.enter(other, 'jobs').refused).toBeUndefined()
    expect(limiter.enter(other, 'jobs').refused?.facts?.limit_of).toBe('organization')
    expect([limiter.openRequests('org_1'), limiter.openRequests('tok_2')]).toEqual([2, 1])
    first.leave()
    expect([limiter.openRequests('org_1'), limiter.openRequests('tok_1')]).toEqual([1, 0])
  })
})

test('what has no token is counted by address, and few addresses are kept', () => {
  let now = 0
  const wrong = openAddressLimiter(2, () => now, 3)
  wrong.count('1.1.1.1')
  expect(wrong.blockedFor('1.1.1.1')).toBe(0)
  wrong.count('1.1.1.1')
  expect(wrong.blockedFor('1.1.1.1')).toBeGreaterThan(0)
  expect(wrong.blockedFor('2.2.2.2')).toBe(0)
  now += 60_000
  expect(wrong.blockedFor('1.1.1.1')).toBe(0)
  // A client has all addresses that begin with the same 64 bits.
  for (let i = 0; i < 2; i++) wrong.count(`2001:db8:0:1::${i}`)
  expect(['2001:db8:0:1::9', '2001:db8:0:2::9'].map(address => wrong.blockedFor(address) > 0)).toEqual([true, false])
  for (let i = 0; i < 2; i++) wrong.count('1.1.1.1')
  expect(wrong.blockedFor('1.1.1.1')).toBeGreaterThan(0)
  for (let i = 0; i < 10; i++) wrong.count(`3.3.3.${i}`)
  expect(wrong.blockedFor('1.1.1.1')).toBe(0)
})
