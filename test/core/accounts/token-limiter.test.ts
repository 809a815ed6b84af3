import { expect, test } from 'vitest'
import { openTokenLimiter } from '../../../core/accounts/token-limiter.ts'
import type { Failure } from '../../../core/failure.ts'
import { limitedCaller } from './_caller.ts'

function refusalOf(work: () => void): Failure | undefined {
  try {
    work()
    return undefined
  } catch (thrown) {
    return thrown as Failure
  }
}

test('work is admitted until the tokens are used, exactly', () => {
  let now = 0
  const limiter = openTokenLimiter({ now: () => now })
  const caller = limitedCaller({}, { tokensPerMinute: 600 })
  for (let at = 0; at < 6; at++) {
    expect(refusalOf(() => limiter.admit(caller))).toBeUndefined()
    limiter.used('tok_1', 100)
  }
  expect(refusalOf(() => limiter.admit(caller))).toMatchObject({
    code: 'rate_limit',
    retryAfterMs: 100,
    facts: { limit: 'tokens_per_minute', limit_of: 'token' },
    message: "The token 'tok_1' may use 600 tokens of models a minute, and has used them. Wait 1 s.",
  })
  now += 99
  expect(refusalOf(() => limiter.admit(caller))).toBeDefined()
  now += 1
  expect(refusalOf(() => limiter.admit(caller))).toBeUndefined()
})

test('tokens that one token has created share its tokens of models', () => {
  const limiter = openTokenLimiter({ now: () => 0 })
  const [one, other] = ['tok_a', 'tok_b'].map(tokenId =>
    limitedCaller({}, {}, { tokenId, parents: [['tok_parent', { tokensPerMinute: 100 }]] }),
  )
  limiter.admit(one!)
  limiter.used('tok_a', 100)
  expect(refusalOf(() => limiter.admit(other!))).toMatchObject({
    message: expect.stringContaining("The token 'tok_parent' may use 100 tokens of models a minute"),
  })
})

test('work that runs at the same time may make a debt, which is repaid before the next is admitted', () => {
  let now = 0
  const limiter = openTokenLimiter({ now: () => now })
  const caller = limitedCaller({ tokensPerMinute: 60 })
  for (let at = 0; at < 3; at++) limiter.admit(caller)
  for (let at = 0; at < 3; at++) limiter.used('tok_1', 60)
  expect(limiter.look(caller).organization).toMatchObject({ remaining: 0, retryAfterMs: 121_000, resetMs: 180_000 })
  now += 120_999
  expect(refusalOf(() => limiter.admit(caller))?.facts).toEqual({
    limit: 'tokens_per_minute',
    limit_of: 'organization',
  })
  now += 1
  expect(refusalOf(() => limiter.admit(caller))).toBeUndefined()
})

test('all tokens of an organization share its limit, and a rotated token continues its own', () => {
  const limiter = openTokenLimiter({ now: () => 0 })
  const [first, second] = ['tok_1', 'tok_2'].map(tokenId => limitedCaller({ tokensPerMinute: 100 }, {}, { tokenId }))
  limiter.admit(first!)
  limiter.used('tok_1', 100)
  expect(refusalOf(() => limiter.admit(second!))).toBeDefined()
  const old = limitedCaller({}, { tokensPerMinute: 10 }, { organizationId: 'org_2', tokenId: 'tok_3' })
  limiter.admit(old)
  limiter.used('tok_3', 10)
  const rotated = limitedCaller(
    {},
    { tokensPerMinute: 10 },
    { organizationId: 'org_2', tokenId: 'tok_4', originId: 'tok_3' },
  )
  expect(refusalOf(() => limiter.admit(rotated))).toBeDefined()
})

test('without a limit nothing is counted, and usage of unknown tokens is ignored', () => {
  const limiter = openTokenLimiter({ now: () => 0 })
  const caller = limitedCaller()
  limiter.admit(caller)
  limiter.used('tok_1', 1e9)
  limiter.used('tok_unknown', 1e9)
  expect(limiter.look(caller)).toMatchObject({ organization: { limit: 0 }, token: { limit: 0 } })
})

test('work that a gateway process has admitted is counted by the limits of its caller as they are known', () => {
  const limiter = openTokenLimiter({ now: () => 0 })
  const caller = limitedCaller({ tokensPerMinute: 100 })
  limiter.know(caller)
  limiter.used('tok_1', 40)
  expect(limiter.look(caller).organization.remaining).toBe(60)
  limiter.know(limitedCaller())
  limiter.used('tok_1', 40)
  expect(limiter.look(caller).organization.remaining).toBe(60)
})
