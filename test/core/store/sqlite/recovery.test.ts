import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkDatabase } from '../../../../core/store/sqlite/check.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { forgetKeys } from '../../../../core/store/sqlite/idempotency-keys.ts'
import { maxCrashes } from '../../../../core/store/sqlite/recovery.ts'
import type { JobRecord, Store } from '../../../../core/store/store.ts'
import { newExecution } from '../../../store/conformance/drawn.ts'
import { claimWaiting, completed, newJob, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

/** Claims in one boot, then changes the rows so that the boot has ended. Closing a store would release its jobs. */
async function crash(dataDir: string, work: (store: Store) => Promise<unknown>): Promise<void> {
  const opened = await openTestStore({ dataDir })
  await work(opened.store)
  const { bootId } = opened.store.recovery
  const connection = openDatabase(join(dataDir, 'infer.db'))
  connection.prepare("UPDATE jobs SET boot = 'dead' WHERE boot = ?").run(bootId)
  connection.close()
  await opened.store.close()
}
const claimAll = (store: Store): Promise<JobRecord[]> => claimWaiting(store)

test('jobs of a killed server are released with their attempt charged, and late results are dropped', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  let claimed: JobRecord[] = []
  await crash(dataDir, async store => {
    await store.jobs.submit(newJob())
    await store.jobs.submit(newJob())
    claimed = await claimAll(store)
  })
  await using opened = await openTestStore({ dataDir })
  expect(opened.store.recovery).toMatchObject({ requeued: 2, crashed: 0 })
  const again = await claimAll(opened.store)
  expect(again.map(({ id, attempt, claims }) => [id, attempt, claims])).toEqual(claimed.map(({ id }) => [id, 2, 2]))
  expect(await opened.store.jobs.settle(claimed[0]!, completed())).toBe(false)
  expect(await opened.store.jobs.settle(again[0]!, completed())).toBe(true)
  expect(opened.store.stats()).toMatchObject({ lateResults: 1, ledgerRows: 1 })
})

test(`a job that was running at ${maxCrashes} unclean exits ends worker_crashed, with nothing billed`, async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const { id } = newJob()
  await crash(dataDir, async store => {
    await store.jobs.submit(newJob({ id, maxAttempts: 1 }))
    await claimAll(store)
  })
  for (let times = 2; times <= maxCrashes; times++)
    await crash(dataDir, async store => {
      expect(store.recovery).toMatchObject({ requeued: 1, crashed: 0 })
      await claimAll(store)
    })
  await using opened = await openTestStore({ dataDir })
  expect(opened.store.recovery).toMatchObject({ requeued: 0, crashed: 1 })
  expect(await opened.store.jobs.find(organizationId, id)).toMatchObject({
    status: 'failed',
    attempt: maxCrashes,
    cost: 0,
    error: { code: 'worker_crashed', retryable: false, message: expect.stringContaining('5 times') },
  })
  expect(opened.store.stats().ledgerRows).toBe(1)
})

/** Claims one job of a model at all crashes but the last, and then all that wait. */
async function crashOften(dataDir: string, modelId: string): Promise<void> {
  for (let times = 1; times < maxCrashes; times++)
    await crash(dataDir, async store => expect(await claimWaiting(store, { modelId, limit: 1 })).toHaveLength(1))
  await crash(dataDir, store => claimWaiting(store, { modelId }))
}

test('an item that ends worker_crashed ends others that were running too, and the server starts', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const { modelId, ...execution } = newExecution({ nodes: { each: [] } })
  const [each] = execution.nodes
  Object.assign(each!, { direct: false, items: { parallel: 3, onError: 'fail', direct: false } })
  await crash(dataDir, async store => {
    await store.executions.create(execution)
    await store.executions.expand(organizationId, each!.jobId, { at: 5, count: 3 })
  })
  await crashOften(dataDir, modelId)
  await using opened = await openTestStore({ dataDir })
  expect(opened.store.recovery).toMatchObject({ requeued: 0, crashed: 1 })
  const { executions, jobs } = opened.store
  const items = await executions.items(organizationId, execution.id, { nodeId: 'each', after: -1, limit: 9 })
  expect(items.map(({ status }) => status).toSorted()).toEqual(['cancelled', 'cancelled', 'failed'])
  expect((await executions.nodes(organizationId, execution.id))[0]).toMatchObject({
    status: 'failed',
    error: { code: 'worker_crashed' },
  })
  expect(await executions.summary(organizationId, execution.id)).toMatchObject({ status: 'failed' })
  expect(await jobs.counts()).toMatchObject({ pending: 0, processing: 0, failed: 2, cancelled: 2 })
  expect((await checkDatabase(dataDir)).findings).toEqual([])
})

test('a node that ends worker_crashed ends the nested execution beside it, and the server starts', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const { modelId, ...outer } = newExecution({ nodes: { crashes: [], sub: [] } })
  const { modelId: _, ...drawn } = newExecution({ nodes: { within: [] } }, { parentJob: { id: outer.nodes[1]!.jobId } })
  const inner = { ...drawn, nodes: drawn.nodes.map(node => ({ ...node, modelId })) }
  await crash(dataDir, async store => {
    await store.executions.create(outer)
    await store.executions.create(inner)
  })
  await crashOften(dataDir, modelId)
  await using opened = await openTestStore({ dataDir })
  expect(opened.store.recovery).toMatchObject({ requeued: 0, crashed: 1 })
  const { executions, jobs } = opened.store
  expect(await executions.summary(organizationId, outer.id)).toMatchObject({ status: 'failed' })
  expect(await executions.summary(organizationId, inner.id)).toMatchObject({ status: 'cancelled' })
  expect(await jobs.counts()).toMatchObject({ pending: 0, processing: 0, failed: 1, cancelled: 2 })
  expect((await checkDatabase(dataDir)).findings).toEqual([])
})

test('an orderly stop is no crash and charges no attempt, however often', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const { id } = newJob()
  for (let times = 0; times <= maxCrashes; times++) {
    await using opened = await openTestStore({ dataDir })
    if (times === 0) await opened.store.jobs.submit(newJob({ id }))
    expect(opened.store.recovery).toMatchObject({ requeued: 0, crashed: 0 })
    expect((await claimAll(opened.store)).map(({ attempt, claims }) => [attempt, claims])).toEqual([[1, times + 1]])
  }
})

test('keys expire oldest first, a few at a time, and a key that was used again is new', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const key = (name: string, createdAt: number) => newJob({ createdAt, idempotency: { key: name, bodyHash: 'h' } })
  const day = 86_400_000
  {
    await using opened = await openTestStore({ dataDir })
    for (const [at, name] of ['a', 'b', 'c', 'd'].entries()) await opened.store.jobs.submit(key(name, at))
    await opened.store.jobs.submit(key('a', day + 10))
  }
  const connection = openDatabase(join(dataDir, 'infer.db'))
  const forget = forgetKeys(connection)
  expect(forget(3, 2)).toBe(2)
  expect(forget(3, 2)).toBe(1)
  expect(forget(4, 100)).toBe(1)
  expect(connection.prepare('SELECT created_at FROM idempotency_keys').pluck().all()).toEqual([day + 10])
  connection.close()
})
