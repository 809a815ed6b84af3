import OpenAI, { NotFoundError } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { openReceiver, type Receiver } from '../_receiver.ts'

/** Webhook endpoints with the official client, with only the base URL changed. */
let app: TestApp
let client: OpenAI
let receiver: Receiver
beforeAll(async () => {
  receiver = await openReceiver()
  app = await startApp({ models: [fakeModel('fake')], webhooks: { allowed_addresses: ['127.0.0.1'] } })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

type Types = OpenAI.Webhooks.WebhookCreateParams['event_types']
const types = ['job.completed'] as string[] as Types

test('create, retrieve, list, update, test, rotateSecret, unwrap and delete', async () => {
  const created = await client.webhooks.create({ name: 'n', url: `${receiver.url}/a`, event_types: types })
  const { signing_secret, ...endpoint } = created
  expect(endpoint).toMatchObject({ object: 'webhook_endpoint', name: 'n', event_types: types })
  expect(await client.webhooks.retrieve(created.id)).toEqual(endpoint)

  await client.webhooks.create({ name: 'second', url: `${receiver.url}/b`, event_types: types })
  const names: string[] = []
  for await (const { name } of client.webhooks.list({ limit: 1 })) names.push(name)
  expect(names).toEqual(['second', 'n'])
  expect(await client.webhooks.update(created.id, { name: 'renamed' })).toMatchObject({
    name: 'renamed',
    url: endpoint.url,
  })

  const tested = await client.webhooks.test(created.id, { event_type: 'job.completed' as never })
  expect(tested).toMatchObject({
    object: 'webhook_endpoint.test',
    webhook_endpoint_id: created.id,
    event_type: 'job.completed',
    status_code: 204,
    success: true,
  })
  const message = await receiver.next()
  const headers = message.headers as Record<string, string>
  expect(await client.webhooks.unwrap(message.text, headers, signing_secret)).toEqual(message.body)

  const kept = await client.webhooks.rotateSecret(created.id, { keep_old_secret_active_for_24_hours: true })
  await client.webhooks.test(created.id, { event_type: 'job.completed' as never })
  const both = await receiver.next()
  for (const secret of [signing_secret, kept.signing_secret])
    await client.webhooks.verifySignature(both.text, both.headers, secret)
  const only = await client.webhooks.rotateSecret(created.id)
  expect(only.signing_secret).not.toBe(kept.signing_secret)
  await client.webhooks.test(created.id, { event_type: 'job.completed' as never })
  const last = await receiver.next()
  await expect(
    client.webhooks.verifySignature(last.text, last.headers as Record<string, string>, kept.signing_secret),
  ).rejects.toThrow()

  expect(await client.webhooks.delete(created.id)).toEqual({
    id: created.id,
    object: 'webhook_endpoint.deleted',
    deleted: true,
  })
  await expect(client.webhooks.retrieve(created.id)).rejects.toThrow(NotFoundError)
  const { data } = await client.webhooks.eventTypes.list()
  expect(data).toEqual(expect.arrayContaining(['job.completed', 'workflow_execution.failed', 'quota.exceeded']))
})
