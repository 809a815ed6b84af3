import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { forgetKeys } from '../../../../core/store/sqlite/idempotency-keys.ts'
import { maxCrashes } from '../../../../core/store/sqlite/recovery.ts'
import type { JobRecord, Store } from '../../../../core/store/store.ts'
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
