import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openCommands } from '../../../../core/store/sqlite/commands.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { openTransactions, type SentCommand } from '../../../../core/store/sqlite/group.ts'
import { memoryOf, openWriteContext } from '../../../../core/store/sqlite/write-context.ts'
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

test.each([
  ['together', []],
  // It refuses by an error: the commands are run again, each with a savepoint.
  ['apart', [['jobs.remove', [organizationId, 'job_waiting_0', 1]]]],
] as [string, SentCommand[]][])(
  'jobs of one transaction have their events, without a gap, although some are removed in it: %s',
  async (_, failing) => {
    using directory = temporaryDirectory()
    await (await openTestStore({ dataDir: directory.path }))[Symbol.asyncDispose]()
    using connection = openDatabase(join(directory.path, 'infer.db'))
    const context = openWriteContext(connection, 'boot')
    const run = openTransactions(connection, openCommands(connection, context), memoryOf(context))
    const ids = Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? `job_waiting_${at}` : `job_removed_${at}`))
    const sent = ids.flatMap((id): SentCommand[] => {
      const added: SentCommand = ['addJob', [newJob({ id })]]
      if (id.includes('waiting')) return [added]
      return [added, ['cancelJob', [organizationId, id, 1]], ['jobs.remove', [organizationId, id, 1]]]
    })
    const undone = vi.spyOn(connection, 'exec')
    const { failures } = run([...sent, ...failing])
    expect(failures.length).toBe(failing.length)
    expect(undone.mock.calls).toEqual(failing.length > 0 ? [['ROLLBACK']] : [])
    const events = connection.query<{
      sequence: number
      id: string
      type: string
    }>`SELECT sequence, id, type FROM events
      JOIN jobs USING (number) ORDER BY sequence`.all()
    expect(events.map(({ id, type }) => [id, type])).toEqual(
      ids.filter(id => id.includes('waiting')).map(id => [id, 'job.created']),
    )
    const { sequence } = connection.query<{ sequence: number }>`SELECT sequence FROM last_event`.get()!
    expect(sequence).toBe(40 + 20)
    expect(events.map(event => event.sequence)).toEqual(events.map((_, at) => 1 + at * 3))
    expect(connection.pragma('foreign_key_check')).toEqual([])
  },
)
