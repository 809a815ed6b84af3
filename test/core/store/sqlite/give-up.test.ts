import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { newExecution } from '../../../store/conformance/drawn.ts'
import { claimWaiting, newJob, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

/** A webhook that no event can be delivered to: an object, as the table demands, without an address. */
const unusable = '{}'

function change(dataDir: string, sql: string): void {
  const connection = openDatabase(join(dataDir, 'infer.db'))
  connection.exec(sql)
  connection.close()
}
const logged = (lines: readonly string[], id: string) => lines.filter(line => line.includes(id))

test('a start deadline that cannot be applied fails its job with a reason, once, and the other jobs as usual', async () => {
  await using opened = await openTestStore()
  const { store, dataDir, lines } = opened
  const [first, bad, last] = [newJob({ startBy: 10 }), newJob({ startBy: 11 }), newJob({ startBy: 12 })]
  for (const job of [first, bad, last]) await store.jobs.submit(job)
  change(dataDir, `UPDATE jobs SET webhook = '${unusable}' WHERE id = '${bad.id}'`)
  expect((await store.jobs.expire(20, 10)).map(({ id, error }) => [id, error!.code])).toEqual([
    [first.id, 'timeout'],
    [bad.id, 'internal_error'],
    [last.id, 'timeout'],
  ])
  expect(await store.jobs.find(organizationId, bad.id)).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining(`The job ${bad.id} could not be processed`) },
  })
  expect([await store.jobs.expire(20, 10), await store.jobs.nextDue()]).toEqual([[], null])
  expect(logged(lines, bad.id)).toHaveLength(1)
  expect(store.stats().ledgerRows).toBe(3)
})

test('an execution that cannot time out fails, with its jobs, and the others time out', async () => {
  await using opened = await openTestStore()
  const { store, dataDir, lines } = opened
  const made = [1, 2, 3].map(() => newExecution({ nodes: { a: [], b: [] } }, { timeoutMs: 10 }))
  for (const { modelId: _, ...one } of made) {
    await store.executions.create(one)
    await store.jobs.claim(organizationId, one.nodes[0]!.jobId, 1)
  }
  const bad = made[1]!
  change(dataDir, `UPDATE executions SET webhook = '${unusable}' WHERE id = '${bad.id}'`)
  const ended = await store.executions.expire(Date.now() + 1e6, 10)
  expect(ended.map(({ id, status }) => [id, status])).toEqual(
    made.map(({ id }) => [id, id === bad.id ? 'failed' : 'timed_out']),
  )
  expect(ended[1]!.error).toMatchObject({ code: 'node_failed', nodeId: null, cause: { code: 'internal_error' } })
  for (const { jobId } of bad.nodes)
    expect(await store.jobs.find(organizationId, jobId)).toMatchObject({ status: 'cancelled' })
  expect(await store.executions.nextDue()).toBeNull()
  expect(logged(lines, bad.id)).toHaveLength(1)
})

test('a job whose end cannot be stored at the start of the server does not keep it from starting', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const [bad, usual] = [newJob(), newJob()]
  {
    await using opened = await openTestStore({ dataDir })
    for (const job of [bad, usual]) await opened.store.jobs.submit(job)
    await claimWaiting(opened.store)
    change(dataDir, `UPDATE jobs SET boot = 'dead', webhook = iif(id = '${bad.id}', '${unusable}', NULL)`)
  }
  await using again = await openTestStore({ dataDir })
  expect(await again.store.jobs.find(organizationId, bad.id)).toMatchObject({ status: 'failed' })
  expect(await again.store.jobs.find(organizationId, usual.id)).toMatchObject({ status: 'pending', attempt: 1 })
  expect(logged(again.lines, bad.id)).toHaveLength(1)
})

test('a row that cannot be removed stays for good, and the others are removed', async () => {
  await using opened = await openTestStore()
  const { store, dataDir, lines } = opened
  const jobs = [1, 2, 3].map(() => newJob({ retentionMs: 1 }))
  for (const job of jobs) await store.jobs.submit(job)
  for (const { id } of jobs) await store.jobs.cancel(organizationId, id, 1)
  const bad = jobs[1]!
  change(
    dataDir,
    `CREATE TRIGGER kept BEFORE DELETE ON jobs WHEN OLD.id = '${bad.id}' BEGIN SELECT RAISE(ABORT, 'kept'); END`,
  )
  expect(await store.jobs.sweep(10, 10)).toBeGreaterThan(0)
  expect((await store.jobs.list(organizationId, { limit: 9 })).jobs.map(({ id }) => id)).toEqual([bad.id])
  expect(await store.jobs.sweep(10, 10)).toBe(0)
  expect(logged(lines, bad.id)).toHaveLength(1)
})

test('deleting an organization ends work that cannot be ended as usual', async () => {
  await using opened = await openTestStore()
  const { store, dataDir } = opened
  const [bad, usual] = [newJob(), newJob()]
  for (const job of [bad, usual]) await store.jobs.submit(job)
  change(dataDir, `UPDATE jobs SET webhook = '${unusable}' WHERE id = '${bad.id}'`)
  expect(await store.organizations.cancelWork(organizationId, 5, 10)).toEqual({ jobs: 2, executions: 0 })
  expect(await store.jobs.find(organizationId, bad.id)).toMatchObject({ status: 'failed' })
  expect(await store.jobs.find(organizationId, usual.id)).toMatchObject({ status: 'cancelled' })
})
