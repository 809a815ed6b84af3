import { once } from 'node:events'
import { expect, test } from 'vitest'
import { checkDatabase } from '../../../../core/store/sqlite/boot.ts'
import { heard, startChild } from '../_children.ts'
import { openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

test('another process gets the directory: the first one reads on, and its commands run once in the other', async () => {
  using directory = temporaryDirectory()
  const child = startChild('handOver', directory.path)
  // Listened to at once, because the messages may arrive together.
  const [{ command }, { handedOver }] = await Promise.all([heard(child, 'command'), heard(child, 'handedOver')])
  const { name, given } = command as { name: string; given: unknown[] }
  const { jobId, callId } = handedOver as { jobId: string; callId: string }

  checkDatabase(directory.path)
  await using taken = await openTestStore({ dataDir: directory.path, checked: true })
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
