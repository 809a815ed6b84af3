import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import type { Store } from '../../../../core/store/store.ts'
import { told } from '../../../store/conformance/events.ts'
import { completed, failed, newJob, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

test('every change of status has its event, in order, across retries, a release, a crash and an orderly stop', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const { id } = newJob()
  const claim = async (store: Store) => {
    await store.jobs.wake(Number.MAX_SAFE_INTEGER, 10)
    return (await store.jobs.claim(organizationId, id, Date.now()))!
  }
  {
    await using opened = await openTestStore({ dataDir })
    await opened.store.jobs.submit(newJob({ id, maxAttempts: 5 }))
    await opened.store.jobs.settle(await claim(opened.store), failed(1))
    await opened.store.jobs.release(await claim(opened.store), 0)
    await claim(opened.store)
    const connection = openDatabase(join(dataDir, 'infer.db'))
    connection.prepare("UPDATE jobs SET boot = 'dead'").run()
    connection.close()
  }
  {
    await using opened = await openTestStore({ dataDir })
    expect(opened.store.recovery.requeued).toBe(1)
    await claim(opened.store)
  }
  await using opened = await openTestStore({ dataDir })
  await opened.store.jobs.settle(await claim(opened.store), completed())
  expect(await told(opened.store, id)).toEqual([
    ['created', 0],
    ['started', 1],
    ['retrying', 1],
    ['started', 2],
    ['retrying', 1],
    ['started', 2],
    ['retrying', 2],
    ['started', 3],
    ['retrying', 2],
    ['started', 3],
    ['completed', 3],
  ])
  const all = await opened.store.events.after(organizationId, { sequence: 0, limit: 100, jobId: id })
  const errors = all.flatMap(({ type, data }) => (type === 'job.retrying' ? [data && JSON.parse(data).code] : []))
  expect(errors).toEqual([failed(1).error.code, null, 'worker_crashed', null])
})
