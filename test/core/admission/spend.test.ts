import { expect, test } from 'vitest'
import type { SpendChange } from '../../../core/admission/handed-spend.ts'
import type { TokenLimits } from '../../../core/store/store.ts'
import { claimWaiting, completed, finishedCall, newJob, newToken, organizationId } from '../store/_store.ts'
import { bill, day, monthAfter, nextMonth, opened, refusal, start, who } from './_spend.ts'

const token = (originId: string, monthlySpendLimit: number | null) => ({
  originId,
  limits: { monthlySpendLimit } as TokenLimits,
  parentLimits: [],
})
const limited = who({ organizationLimit: 100 })

const reset = new Date(nextMonth).toISOString().replace('.000', '')

test('work begins while anything is left, and not once what is spent and held reaches the limit', async () => {
  await using one = await opened()
  const { spend } = one
  spend.hold('job_1', limited, 60)
  spend.hold('job_2', limited, 60)
  expect(spend.ofOrganization(organizationId, 100)).toMatchObject({ spent: 0, held: 120, remaining: 0 })
  expect(refusal(() => spend.hold('job_3', limited, 1))?.code).toBe('quota_exceeded')
  spend.settle('job_1', bill(20))
  spend.release('job_2')
  expect(spend.ofOrganization(organizationId, 100)).toMatchObject({ spent: 20, held: 0, remaining: 80 })
  expect(spend.ofToken(token('tok_test', null))).toMatchObject({ spent: 20, limit: null, remaining: null })
  spend.hold('job_3', limited, 1)
})

test('the refusal names the limit and its reset, in words that clients do not retry', async () => {
  await using one = await opened()
  const { spend } = one
  spend.settle('job_1', bill(100_000_000))
  const whole = who({ organizationLimit: 100_000_000 })
  const { message, facts, type, retryable } = refusal(() => spend.hold('job_2', whole, 1))!
  expect(message).toBe(
    `You exceeded the current monthly quota of this organization (spend limit 100.00 EUR); it will reset at ${reset}.`,
  )
  expect({ facts, type, retryable }).toEqual({
    facts: { reset_at: nextMonth / 1000, quota: 'organization' },
    type: 'insufficient_quota',
    retryable: false,
  })
  const token = who({ originId: 'tok_other', tokenLimit: 150_000_000 })
  spend.hold('job_3', token, 150_000_000)
  expect(refusal(() => spend.hold('job_4', token, 1))!.message).toBe(
    `You exceeded the current monthly quota of the token 'laptop' (spend limit 150.00 EUR); it will reset at ${reset}. Running work holds 150.00 EUR of it until it ends.`,
  )
})

test('free work is never refused, and a limit of 0 refuses all other work', async () => {
  await using one = await opened()
  const none = who({ organizationLimit: 0 })
  one.spend.hold('job_1', none, 0)
  expect(refusal(() => one.spend.hold('job_2', none, 1))?.code).toBe('quota_exceeded')
})

test('a new secret of a token continues the spending of the first one', async () => {
  await using one = await opened()
  one.spend.hold('job_1', who(), 10)
  one.spend.settle('job_1', { ...bill(10), tokenId: 'tok_next' })
  expect(refusal(() => one.spend.hold('job_2', who({ tokenLimit: 10 }), 1))?.code).toBe('quota_exceeded')
})

test('a hold is taken once for all attempts, and released once, whoever ends the job', async () => {
  await using one = await opened()
  const { spend } = one
  spend.hold('job_1', limited, 60)
  spend.hold('job_1', limited, 60)
  expect(spend.ofOrganization(organizationId, 100).held).toBe(60)
  spend.release('job_1')
  spend.release('job_1')
  expect(spend.ofOrganization(organizationId, 100).held).toBe(0)
})

test('each month has its own budget, and a clock that jumps finds the month that it left', async () => {
  await using one = await opened()
  const { spend, clock } = one
  spend.settle('job_1', bill(100))
  expect(refusal(() => spend.hold('job_2', limited, 1))?.code).toBe('quota_exceeded')
  clock.at = start + day
  spend.hold('job_2', limited, 1)
  expect(spend.ofOrganization(organizationId, 100)).toMatchObject({
    spent: 0,
    held: 1,
    period: { start: nextMonth, end: monthAfter },
  })
  clock.at = start
  expect(refusal(() => spend.hold('job_3', limited, 1))?.code).toBe('quota_exceeded')
  spend.settle('job_2', bill(5, start + day))
  clock.at = start + day
  expect(spend.ofOrganization(organizationId, 100)).toMatchObject({ spent: 5, held: 0 })
})

test('after a restart the spending of the month and the holds of unfinished jobs are known', async () => {
  await using one = await opened()
  const { store } = one
  await store.tokens.create(newToken({ id: 'tok_a', originId: 'tok_first' }))
  await store.jobs.submit(newJob({ id: 'job_held', tokenId: 'tok_a', held: 30 }))
  await store.jobs.record([finishedCall({ tokenId: 'tok_a', cost: 12, finishedAt: start })])
  await store.jobs.record([finishedCall({ tokenId: 'tok_a', cost: 7, finishedAt: start - 62 * day })])
  const again = await one.open()
  expect(again.ofOrganization(organizationId, null)).toMatchObject({ spent: 12, held: 30 })
  expect(again.ofToken(token('tok_first', 50))).toMatchObject({ spent: 12, held: 30, remaining: 8 })
  const [claimed] = await claimWaiting(store, { limit: 1 })
  await store.jobs.settle(claimed!, { ...completed(start), cost: 3 })
  const third = await one.open()
  expect(third.ofToken(token('tok_first', null))).toMatchObject({ spent: 15, held: 0 })
})

test('work that was accepted while its model cost nothing is counted for its token too', async () => {
  await using one = await opened()
  await one.store.tokens.create(newToken({ id: 'tok_b', originId: 'tok_origin' }))
  one.spend.settle('job_1', { ...bill(4), tokenId: 'tok_b' })
  await expect.poll(() => one.spend.ofToken(token('tok_origin', null)).spent).toBe(4)
  expect(one.spend.ofOrganization(organizationId, null).spent).toBe(4)
})

test('a hold and its settlement take less than 10 µs together', async () => {
  await using one = await opened()
  const { spend } = one
  const spender = who({ organizationLimit: 1e15, tokenLimit: 1e15 })
  const rounds = 50_000
  const run = () => {
    const before = performance.now()
    for (let at = 0; at < rounds; at++) {
      spend.hold(`job_${at}`, spender, 10)
      spend.settle(`job_${at}`, bill(3))
    }
    return ((performance.now() - before) * 1000) / rounds
  }
  run()
  const best = Math.min(run(), run(), run())
  process.stdout.write(`spend: ${best.toFixed(2)} µs for a hold and its settlement\n`)
  expect(best).toBeLessThan(10)
})

test('what work of an earlier server holds counts in the next one until it ends there', async () => {
  await using one = await opened()
  const next = await one.open()
  one.spend.hold('job_1', limited, 60)
  one.spend.hold('job_2', limited, 30)
  const later: SpendChange[] = []
  const taken = next.takeOver(one.spend.handOver(change => void later.push(change), []))
  expect(next.ofOrganization(organizationId, 100)).toMatchObject({ spent: 0, held: 90 })
  one.spend.settle('job_1', bill(50))
  one.spend.release('job_2')
  one.spend.release('job_2')
  for (const change of later) taken.change(change)
  expect(next.ofOrganization(organizationId, 100)).toMatchObject({ spent: 50, held: 0 })
  expect(refusal(() => next.hold('job_3', limited, 60))).toBeUndefined()
})

test('what gateway processes of an earlier server hold is not free in the next one until they return it or end', async () => {
  await using one = await opened()
  const next = await one.open()
  one.spend.lend(organizationId, 80, 30)
  const later: SpendChange[] = []
  const taken = next.takeOver(one.spend.handOver(change => void later.push(change), []))
  expect(next.left(organizationId, 100)).toBe(20)
  expect(next.ofOrganization(organizationId, 100)).toMatchObject({ spent: 0, held: 30 })
  one.spend.lend(organizationId, -50, 0)
  one.spend.lend(organizationId, -10, -10)
  one.spend.settle('job_1', bill(10))
  for (const change of later) taken.change(change)
  expect(next.left(organizationId, 100)).toBe(70)
  taken.ended()
  expect(next.left(organizationId, 100)).toBe(90)
  expect(next.ofOrganization(organizationId, 100)).toMatchObject({ spent: 10, held: 0 })
})

test('the end of an earlier server frees what its calls hold, and nothing that the next one holds itself', async () => {
  await using one = await opened()
  const next = await one.open()
  one.spend.hold('job_1', limited, 60)
  one.spend.hold('job_2', limited, 30)
  // A stored job, which holds in the next one from its start.
  next.hold('job_2', limited, 30)
  const told: SpendChange[] = []
  next.handOver(change => void told.push(change), [])
  next.takeOver(one.spend.handOver(() => {}, [])).ended()
  expect(next.ofOrganization(organizationId, 100)).toMatchObject({ held: 30 })
  expect(told).toEqual([
    { kind: 'held', id: 'job_1', organizationId, tokenIds: ['tok_test'], amount: 60 },
    { kind: 'ended', id: 'job_1', settlement: null },
  ])
})

test('what unwritten calls have cost is known to the next server, whenever they ended', async () => {
  await using one = await opened()
  const calls = [2, 3].map(cost => finishedCall({ cost, finishedAt: start }))
  calls.push(finishedCall({ cost: 5, finishedAt: start - 40 * day }))
  for (const call of calls) one.spend.settle(call.id, call)
  // That of a stored job is in the store.
  one.spend.settle('job_2', { ...bill(4), isStored: true })
  await one.store.tokens.create(newToken({ id: 'tok_test' }))
  const next = await one.open()
  next.takeOver(one.spend.handOver(() => {}, calls))
  expect(next.ofOrganization(organizationId, 100)).toMatchObject({ spent: 5, held: 0 })
  await expect.poll(() => next.ofToken(token('tok_test', null)).spent).toBe(5)
})

test('a job that an earlier server stores in the next one holds there until it ends', async () => {
  await using one = await opened()
  const next = await one.open()
  const later: SpendChange[] = []
  const taken = next.takeOver(one.spend.handOver(change => void later.push(change), []))
  const hold = (id: string, amount: number) => one.spend.hold(id, limited, amount)
  hold('job_stored', 10)
  hold('job_repeated', 20)
  hold('job_late', 40)
  hold('call', 8)
  for (const change of later.splice(0)) taken.change(change)
  const { held } = next.ofOrganization(organizationId, 100)
  expect(held).toBe(78)
  taken.storing(['job_stored', 'job_repeated'])(['job_repeated'])
  // Its transaction ends after that server.
  const refused = taken.storing(['job_late'])
  taken.ended()
  expect(next.ofOrganization(organizationId, 100).held).toBe(50)
  refused(['job_late'])
  expect(next.ofOrganization(organizationId, 100).held).toBe(10)
  next.settle('job_stored', bill(3))
  expect(next.ofOrganization(organizationId, 100)).toMatchObject({ spent: 3, held: 0 })
})
