import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openPlans } from '../../../core/accounts/plans.ts'
import { openAdmission } from '../../../core/admission/admission.ts'
import { openBodyMemory } from '../../../core/admission/body-memory.ts'
import type { SpendChange } from '../../../core/admission/handed-spend.ts'
import { openSpend } from '../../../core/admission/spend.ts'
import { type Spender } from '../../../core/admission/spender.ts'
import { Failure } from '../../../core/failure.ts'
import { Model } from '../../../core/models/model.ts'
import { openRegistry } from '../../../core/models/registry.ts'
import { openDatabase } from '../../../core/store/sqlite/database.ts'
import type { JobRecord, TokenLimits } from '../../../core/store/store.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'
import {
  claimWaiting,
  completed,
  finishedCall,
  keptLog,
  newJob,
  newToken,
  openTestStore,
  organizationId,
  temporaryDirectory,
} from '../store/_store.ts'

const day = 86_400_000
/** 30 November 2026, 12:00 UTC. */
const start = Date.UTC(2026, 10, 30, 12)

async function opened(storeOptions: Parameters<typeof openTestStore>[0] = {}) {
  const opened = await openTestStore(storeOptions)
  const clock = { at: start, now: () => clock.at }
  const { log } = keptLog()
  const plans = openPlans({ configured: {}, log })
  const open = () => openSpend({ store: opened.store, plans, currency: 'EUR', log, clock })
  const spend = await open()
  return { ...opened, clock, open, spend }
}

const who = (more: Partial<Spender> = {}): Spender => ({
  organizationId,
  originId: 'tok_test',
  tokenName: 'laptop',
  organizationLimit: null,
  tokenLimit: null,
  parents: [],
  ...more,
})
const token = (originId: string, monthlySpendLimit: number | null) => ({
  originId,
  limits: { monthlySpendLimit } as TokenLimits,
  parentLimits: [],
})
const limited = who({ organizationLimit: 100 })
const bill = (cost: number, finishedAt = start) => ({ organizationId, tokenId: 'tok_test', cost, finishedAt })

function refusal(work: () => void): Failure | undefined {
  try {
    work()
    return undefined
  } catch (thrown) {
    return Failure.from(thrown)
  }
}

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
    'You exceeded the current monthly quota of this organization (spend limit 100.00 EUR); it will reset at 2026-12-01T00:00:00Z.',
  )
  expect({ facts, type, retryable }).toEqual({
    facts: { reset_at: Date.UTC(2026, 11, 1) / 1000, quota: 'organization' },
    type: 'insufficient_quota',
    retryable: false,
  })
  const token = who({ originId: 'tok_other', tokenLimit: 150_000_000 })
  spend.hold('job_3', token, 150_000_000)
  expect(refusal(() => spend.hold('job_4', token, 1))!.message).toBe(
    "You exceeded the current monthly quota of the token 'laptop' (spend limit 150.00 EUR); it will reset at 2026-12-01T00:00:00Z. Running work holds 150.00 EUR of it until it ends.",
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
    period: { start: Date.UTC(2026, 11, 1), end: Date.UTC(2027, 0, 1) },
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

describe('the monthly limit of a fallback', () => {
  /** The end of an attempt after which a fallback does the job. */
  function movedTo(fallback: { modelId: string; reason: 'failed'; held: number }) {
    const { code, message, type, retryable } = new Failure('worker_error', 'It has failed.')
    const error = { code, message, type, retryable, attempt: 1 }
    return { status: 'failed' as const, error, engineId: null, at: start, logs: null, retryAt: 0, fallback }
  }
  const spilling = (limit: number | null = 100, more: Partial<Spender> = {}) =>
    who({ fallback: { modelId: 'hosted', limit }, ...more })

  test('holds no more than is left, and counts for the organization too', async () => {
    await using one = await opened()
    const { spend } = one
    spend.hold('job_1', spilling(), 60)
    expect(spend.mayFallBack(spilling(), 41)).toBe(false)
    expect(refusal(() => spend.hold('job_2', spilling(), 41))).toMatchObject({
      code: 'quota_exceeded',
      message: expect.stringContaining("monthly limit for 'hosted' as a fallback"),
    })
    spend.hold('job_2', spilling(), 40)
    spend.settle('job_1', bill(10))
    expect(spend.mayFallBack(spilling(), 50)).toBe(true)
    expect(spend.mayFallBack(spilling(), 51)).toBe(false)
    expect(spend.ofOrganization(organizationId, 100)).toMatchObject({ spent: 10, held: 40 })
    spend.release('job_2')
    expect(spend.mayFallBack(spilling(), 90)).toBe(true)
  })

  test('is one for each organization and model', async () => {
    await using one = await opened()
    const { spend } = one
    spend.hold('job_1', spilling(), 100)
    expect(spend.mayFallBack(spilling(), 1)).toBe(false)
    expect(spend.mayFallBack(spilling(100, { organizationId: 'org_other' }), 100)).toBe(true)
    expect(spend.mayFallBack(who({ fallback: { modelId: 'other', limit: 100 } }), 100)).toBe(true)
    expect(spend.mayFallBack(spilling(null), 1_000)).toBe(true)
    expect(spend.mayFallBack(who(), 1_000)).toBe(true)
  })

  test('begins anew with the month, and another server takes over what is held of it', async () => {
    await using one = await opened()
    const { spend, clock, open } = one
    spend.hold('job_1', spilling(), 30)
    spend.hold('job_2', spilling(), 30)
    const made = finishedCall({
      id: 'job_1',
      modelId: 'hosted',
      requestedModel: 'own',
      fallbackReason: 'wait',
      cost: 30,
    })
    const call = { ...made, finishedAt: clock.at }
    spend.settle('job_1', call)
    const successor = await open()
    const { change } = successor.takeOver(spend.handOver(() => {}, [call]))
    expect(successor.mayFallBack(spilling(), 40)).toBe(true)
    expect(successor.mayFallBack(spilling(), 41)).toBe(false)
    change({ kind: 'ended', id: 'job_2', settlement: null })
    expect(successor.mayFallBack(spilling(), 70)).toBe(true)
    clock.at += day
    expect(successor.mayFallBack(spilling(), 100)).toBe(true)
  })

  test('is never exceeded by 16 clients whose server is killed again and again, whatever the other side bills', async () => {
    const { path: dataDir } = temporaryDirectory()
    let seed = 7
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed % below
    }
    let made = 0
    let billed = 0
    /** With the requests of which the killed server has no record. */
    let billedThere = 0
    let refused = 0
    for (let life = 0; life < 5; life++) {
      await using one = await opened({ dataDir })
      const { spend, store } = one
      const client = async () => {
        for (let at = 0; at < 12; at++) {
          const amount = 1 + random(9)
          const id = `job_spill_${made++}`
          if (!spend.mayFallBack(spilling(200), amount)) {
            refused++
            continue
          }
          spend.hold(id, spilling(200), amount)
          await spend.storeHold(id, spilling(200), amount)
          if (random(10) === 0) {
            billedThere += amount
            continue
          }
          if (random(10) === 0) {
            spend.release(id)
            continue
          }
          const cost = random(amount + 1)
          billed += cost
          billedThere += cost
          const ended = finishedCall({ id, modelId: 'hosted', requestedModel: 'own', fallbackReason: 'wait', cost })
          await store.jobs.record([{ ...ended, finishedAt: start }])
          spend.settle(id, bill(cost))
        }
      }
      await Promise.all(Array.from({ length: 16 }, client))
    }
    expect(billedThere).toBeLessThanOrEqual(200)
    expect(billedThere).toBeGreaterThan(180)
    expect(billed).toBeLessThan(billedThere)
    expect(refused).toBeGreaterThan(0)
    await using last = await opened({ dataDir })
    const rows = await last.store.spend.read(Date.UTC(2026, 10))
    expect(rows).toContainEqual(expect.objectContaining({ originId: 'fallback:hosted', spent: billedThere }))
    expect(rows).toContainEqual(expect.objectContaining({ originId: null, spent: billed }))
  })

  test('counts a running job once more after a kill: its attempt may be billed, and it runs again', async () => {
    const { path: dataDir } = temporaryDirectory()
    {
      await using before = await opened({ dataDir })
      const { store } = before
      await store.jobs.submit(newJob({ id: 'job_moved', modelId: 'own', held: 5 }))
      const [claim] = await claimWaiting(store, { limit: 1 })
      await store.jobs.settle(claim!, movedTo({ modelId: 'hosted', reason: 'failed', held: 30 }))
      expect(await claimWaiting(store, { limit: 1 })).toMatchObject([{ id: 'job_moved', modelId: 'hosted' }])
      // Closing the store would release it.
      const connection = openDatabase(join(dataDir, 'infer.db'))
      connection.prepare("UPDATE jobs SET boot = 'dead' WHERE status = 'processing'").run()
      connection.close()
    }
    await using after = await opened({ dataDir })
    expect(after.spend.mayFallBack(spilling(), 40)).toBe(true)
    expect(after.spend.mayFallBack(spilling(), 41)).toBe(false)
  })

  test('is held after a crash by stored jobs that a fallback does', async () => {
    await using one = await opened()
    const { store, open } = one
    await store.jobs.submit(newJob({ id: 'job_moved', modelId: 'own', held: 5 }))
    const [claim] = await claimWaiting(store, { limit: 1 })
    const moved = movedTo({ modelId: 'hosted', reason: 'failed', held: 70 })
    expect(await store.jobs.settle(claim!, moved)).toBe(true)
    const spend = await open()
    expect(spend.mayFallBack(spilling(), 30)).toBe(true)
    expect(spend.mayFallBack(spilling(), 31)).toBe(false)
  })

  test('counts what nodes of workflows spend there, while they run and afterwards, as after a restart', async () => {
    await using one = await opened()
    const { spend } = one
    const hosted = Model.parse({
      id: 'hosted',
      engine: 'remote',
      url: 'http://far',
      price: { input_per_million_tokens: 1 },
    })
    const registry = openRegistry({ models: [hosted], defaults: () => [], traits: traitsOf })
    const admission = openAdmission({
      registry,
      room: { records() {}, queue() {}, machine() {} },
      tokenLimiter: { admit() {} },
      spend: { ...spend, spenderOf: async () => who() },
      localOnlyOf: () => undefined,
      bodies: openBodyMemory(1 << 20),
    })
    const usage = { inputTokens: 60, outputTokens: 0 }
    const node = { id: 'job_node', organizationId, tokenId: 'tok_test', modelId: 'hosted', fallbackReason: 'failed' }
    await admission.holdNode(node as JobRecord, hosted, () => ({ usage }))
    expect(spend.mayFallBack(spilling(), 41)).toBe(false)
    spend.settle('job_node', bill(50))
    expect(spend.mayFallBack(spilling(), 51)).toBe(false)
    expect(spend.mayFallBack(spilling(), 50)).toBe(true)
    // Nothing was held for it.
    spend.settle('job_free', { ...bill(20), fallbackModelId: 'hosted', isStored: true })
    expect(spend.mayFallBack(spilling(), 31)).toBe(false)
  })
})
