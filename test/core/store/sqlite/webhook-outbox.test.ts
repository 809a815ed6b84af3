import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkDatabase, openAdminStore } from '../../../../core/store/sqlite/admin.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { memoryOf, openWriteContext } from '../../../../core/store/sqlite/write-context.ts'
import { newJob, openTestStore, organizationId } from '../_store.ts'

const endpoint = (id: string, eventTypes: string[]) => ({
  id,
  organizationId,
  name: 'n',
  url: 'https://example.com',
  eventTypes,
  enabled: true,
  origin: null,
  createdAt: 1,
})
const first = 'whe_01K00000000000000000000001'

test('events of the organization itself are in order among those of their kind', async () => {
  await using opened = await openTestStore()
  const { store, dataDir } = opened
  await store.webhooks.create(endpoint(first, ['quota.*', 'token.created']))
  const connection = openDatabase(join(dataDir, 'infer.db'))
  const context = openWriteContext(connection, 'boot')
  connection.exec('BEGIN IMMEDIATE')
  context.events.addOfOrganization(organizationId, 'quota.warning', { limit: 1 }, 5)
  context.events.addOfOrganization(organizationId, 'token.created', { id: 'tok_1' }, 6)
  context.events.addOfOrganization(organizationId, 'token.revoked', { id: 'tok_1' }, 7)
  context.events.addOfOrganization(organizationId, 'quota.exceeded', { limit: 1 }, 8)
  memoryOf(context).write()
  connection.exec('COMMIT')
  expect(context.effects.take()?.deliveries).toEqual([first, first, first])
  connection.close()
  const found = await store.webhooks.withoutBody(9)
  expect(found.map(({ type, subject }) => [type, subject.data])).toEqual([
    ['quota.warning', { limit: 1 }],
    ['token.created', { id: 'tok_1' }],
    ['quota.exceeded', { limit: 1 }],
  ])
  await store.webhooks.keepBodies(found.map(({ number }) => ({ number, body: '{}' })))
  const due = await store.webhooks.due(first, Number.MAX_SAFE_INTEGER, 9)
  expect(due.map(({ type, object }) => [type, object])).toEqual([
    ['quota.warning', 'quota'],
    ['token.created', 'token'],
  ])
})

test('an endpoint that another process has created gets the next event', async () => {
  await using opened = await openTestStore()
  const { store, dataDir } = opened
  // The writer knows by now that there is no endpoint.
  await store.jobs.submit(newJob())
  const admin = await openAdminStore(dataDir)
  await admin.webhooks.create(endpoint(first, ['job.*']))
  await store.jobs.submit(newJob())
  expect(await store.webhooks.withoutBody(9)).toMatchObject([{ endpointId: first, type: 'job.created' }])
  await admin.webhooks.remove(organizationId, first, 1)
  await admin.close()
  await store.jobs.submit(newJob())
  expect(await store.webhooks.withoutBody(9)).toHaveLength(1)
})

test('an endpoint whose creation was rolled back gets nothing', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  // One group of commands: the second endpoint is refused because its id is taken, and all are run again.
  const [made, refused, submitted] = await Promise.allSettled([
    store.webhooks.create(endpoint(first, ['job.created'])),
    store.webhooks.create(endpoint(first, ['*'])),
    store.jobs.submit(newJob()),
  ])
  expect([made.status, refused.status, submitted.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await store.webhooks.withoutBody(9)).toHaveLength(1)
})

test('infer db check finds deliveries of which none is the next, and those without a body', async () => {
  await using opened = await openTestStore()
  const { store, dataDir } = opened
  await store.webhooks.create(endpoint(first, ['job.created']))
  await store.jobs.submit(newJob())
  expect((await checkDatabase(dataDir)).findings).toEqual([])
  const connection = openDatabase(join(dataDir, 'infer.db'))
  connection.exec(`UPDATE webhook_deliveries SET waits = 1, status = 'pending'`)
  connection.close()
  expect((await checkDatabase(dataDir)).findings).toEqual([
    '1 objects have webhook deliveries of which none, or several, are the next.',
    '1 webhook deliveries have a body and are new, or have none and are not.',
  ])
})
