import { expect, test } from 'vitest'
import { openLimiter, openWrongTokenLimiter } from '../../../core/accounts/limiter.ts'

test('the limit per minute is also the burst, and it refills evenly', () => {
  let now = 0
  const limiter = openLimiter(() => now)
  const take = () => limiter.take('org_1', 'jobs', 60)
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
  expect(limiter.take('a', 'api', 1).allowed).toBe(true)
  expect(limiter.take('a', 'api', 1).allowed).toBe(false)
  expect(limiter.take('a', 'jobs', 1).allowed).toBe(true)
  expect(limiter.take('b', 'api', 1).allowed).toBe(true)
  for (let i = 0; i < 1000; i++) expect(limiter.take('a', 'api', 0).allowed).toBe(true)
})

test('a wall clock set back neither grants nor takes permits', () => {
  let now = 100_000
  const limiter = openLimiter(() => now)
  limiter.take('a', 'api', 2)
  limiter.take('a', 'api', 2)
  now -= 50_000
  expect(limiter.take('a', 'api', 2).allowed).toBe(false)
})

test('only wrong tokens are counted, by address, and few addresses are kept', () => {
  let now = 0
  const wrong = openWrongTokenLimiter(2, () => now, 3)
  wrong.failed('1.1.1.1')
  expect(wrong.blockedFor('1.1.1.1')).toBe(0)
  wrong.failed('1.1.1.1')
  expect(wrong.blockedFor('1.1.1.1')).toBeGreaterThan(0)
  expect(wrong.blockedFor('2.2.2.2')).toBe(0)
  now += 60_000
  expect(wrong.blockedFor('1.1.1.1')).toBe(0)
  for (let i = 0; i < 10; i++) wrong.failed(`3.3.3.${i}`)
  expect(wrong.blockedFor('1.1.1.1')).toBe(0)
})
