import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openAdmission } from '../../../core/admission/admission.ts'
import { openBodyMemory } from '../../../core/admission/body-memory.ts'
import type { Spender } from '../../../core/admission/spender.ts'
import { Failure } from '../../../core/failure.ts'
import { Model } from '../../../core/models/model.ts'
import { openRegistry } from '../../../core/models/registry.ts'
import { openDatabase } from '../../../core/store/sqlite/database.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'
import { claimWaiting, finishedCall, newJob, organizationId, temporaryDirectory } from '../store/_store.ts'
import { bill, day, month, opened, refusal, start, who } from './_spend.ts'

/** The end of an attempt after which a fallback does the job. */
function movedTo(fallback: { modelId: string; reason: 'failed'; held: number }) {
  const { code, message, type, retryable } = new Failure('worker_error', 'It has failed.')
  const error = { code, message, type, retryable, attempt: 1 }
  return { status: 'failed' as const, error, engineId: null, at: start, logs: null, retryAt: 0, fallback }
}
const spilling = (limit: number | null = 100, more: Partial<Spender> = {}) =>
  who({ fallback: { modelId: 'hosted', limit }, ...more })

test('the monthly limit of a fallback holds no more than is left, and counts for the organization too', async () => {
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

test('the monthly limit of a fallback is one for each organization and model', async () => {
  await using one = await opened()
  const { spend } = one
  spend.hold('job_1', spilling(), 100)
  expect(spend.mayFallBack(spilling(), 1)).toBe(false)
  expect(spend.mayFallBack(spilling(100, { organizationId: 'org_other' }), 100)).toBe(true)
  expect(spend.mayFallBack(who({ fallback: { modelId: 'other', limit: 100 } }), 100)).toBe(true)
  expect(spend.mayFallBack(spilling(null), 1_000)).toBe(true)
  expect(spend.mayFallBack(who(), 1_000)).toBe(true)
})

test('the monthly limit of a fallback begins anew with the month, and another server takes over what is held of it', async () => {
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

test('the monthly limit of a fallback is never exceeded by 16 clients whose server is killed again and again, whatever the other side bills', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
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
  const rows = await last.store.spend.read(month)
  expect(rows).toContainEqual(expect.objectContaining({ originId: 'fallback:hosted', spent: billedThere }))
  expect(rows).toContainEqual(expect.objectContaining({ originId: null, spent: billed }))
})

test('the monthly limit of a fallback counts a running job once more after a kill: its attempt may be billed, and it runs again', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
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

test('the monthly limit of a fallback is held after a crash by stored jobs that a fallback does', async () => {
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

test('the monthly limit of a fallback counts what nodes of workflows spend there, while they run and afterwards, as after a restart', async () => {
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
