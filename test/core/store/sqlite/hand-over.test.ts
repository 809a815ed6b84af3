import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Failure } from '../../../../core/failure.ts'
import { callRows } from '../../../../core/store/ledger-rows.ts'
import { pathsIn } from '../../../../core/store/sqlite/directory.ts'
import { prepareSqliteStore } from '../../../../core/store/sqlite/store.ts'
import { heard, startChild } from '../_children.ts'
import { finishedCall, newJob, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

test('another process gets the directory: the first one reads on, and its commands run once in the other', async () => {
  using directory = temporaryDirectory()
  const child = startChild('handOver', directory.path)
  // Listened to at once, because the messages may arrive together.
  const [{ command }, { handedOver }] = await Promise.all([heard(child, 'command'), heard(child, 'handedOver')])
  const { name, given } = command as { name: string; given: unknown[] }
  const { jobId, callId } = handedOver as { jobId: string; callId: string }

  const prepared = await prepareSqliteStore({ dataDir: directory.path })
  await using taken = await openTestStore({ dataDir: directory.path, prepared })
  expect(await taken.store.jobs.find(organizationId, jobId)).toMatchObject({
    status: 'pending',
    attempt: 0,
    boot: null,
  })
  expect(taken.store.recovery).toMatchObject({ requeued: 0, crashed: 0 })

  await taken.store.perform(name, given)
  await taken.store.perform(name, given)
  expect(taken.store.stats().ledgerRows).toBe(1)
  expect((await taken.store.jobs.find(organizationId, callId))?.status).toBe('completed')

  const found = heard(child, 'found')
  child.send('answered')
  expect(await found).toMatchObject({ found: 'completed' })
  if (child.exitCode === null) await once(child, 'exit')
})

test('a command that this version does not have is refused', async () => {
  await using opened = await openTestStore()
  await expect(opened.store.perform('jobs.unknown', [])).rejects.toThrow('shutting down')
})

test('what is prepared while another store writes shows what that wrote until it was closed', async () => {
  using directory = temporaryDirectory()
  const before = await openTestStore({ dataDir: directory.path })
  await before.store.jobs.record([finishedCall()])
  const prepared = await prepareSqliteStore({ dataDir: directory.path })
  const [call, job] = [finishedCall(), newJob()]
  await before.store.jobs.record([call])
  await before.store.jobs.submit(job)
  await before.store.close()
  await using taken = await openTestStore({ dataDir: directory.path, prepared })
  await taken.store.jobs.record([finishedCall()])
  expect(taken.store.stats().ledgerRows).toBe(3)
  expect(await taken.store.jobs.counts()).toMatchObject({ pending: 1 })
  expect((await taken.store.jobs.find(organizationId, call.id))?.status).toBe('completed')
  await expect(taken.store.jobs.submit(job)).rejects.toThrow()
})

test('a damaged database is refused before anything is handed over', async () => {
  using directory = temporaryDirectory()
  await (await openTestStore({ dataDir: directory.path })).store.close()
  writeFileSync(pathsIn(directory.path).database, 'no database')
  await expect(prepareSqliteStore({ dataDir: directory.path })).rejects.toMatchObject({ exitCode: 65 })
})

test('a command of another server is answered while the store closes, refused afterwards, and goes on to a next store', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  const given = [callRows([finishedCall()])]
  const closing = store.close()
  const answer = store.perform('recordCalls', given).then(
    () => 'done',
    (failure: Failure) => failure.code,
  )
  expect(['done', 'shutting_down']).toContain(await answer)
  await closing
  await expect(store.perform('recordCalls', given)).rejects.toMatchObject({ code: 'shutting_down', retryable: true })

  await using handing = await openTestStore()
  const sent: unknown[] = []
  const handed = handing.store.handOver(async (...command) => void sent.push(command))
  await handing.store.perform('recordCalls', given)
  await handed
  await handing.store.perform('recordCalls', given)
  expect(sent).toEqual([
    ['recordCalls', given],
    ['recordCalls', given],
  ])
})
