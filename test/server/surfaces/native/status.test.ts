import { expect, test } from 'vitest'
import { fakeModel, startApp } from '../../../_app.ts'

interface Status {
  version: string
  started_at: number
  requests: number
  jobs: { pending: number; processing: number }
  devices: { id: string; total_bytes: number; booked_bytes: number }[]
  engines: { id: string; model_id: string; state: string; busy: number; slots: number; memory_bytes: number }[]
  models: {
    model_id: string
    status: string
    slots: number
    busy: number
    waiting: number
    waiting_for: { reason: string; detail: string } | null
    output_tokens_per_second: number
    input_tokens_per_second: number
  }[]
  waiting: { id: string; queue_position: number | null; waiting_for: { reason: string; detail: string } }[]
}

test('status shows devices, engines, slots, the queue and the tokens per second', async () => {
  await using app = await startApp({ models: [fakeModel('fake', [], { concurrency: 1 }), fakeModel('cold')] })
  const status = async () => (await (await app.fetch('/api/system/status')).json()) as Status
  const before = await status()
  expect(before).toMatchObject({
    object: 'system.status',
    requests: 1,
    jobs: { pending: 0, processing: 0 },
    engines: [],
    models: [
      { model_id: 'fake', status: 'cold', slots: 0, busy: 0, waiting: 0, output_tokens_per_second: 0 },
      { model_id: 'cold', status: 'cold' },
    ],
    waiting: [],
  })
  expect(before.devices.find(({ id }) => id === 'cpu')).toMatchObject({ booked_bytes: 0 })
  expect(before.devices.every(device => device.total_bytes > 0)).toBe(true)

  const gone = new AbortController()
  const ask = (mode: string) =>
    app.fetch('/std/v1/chat/completions', {
      body: { model: 'fake', messages: [{ role: 'user', content: mode }], stream: true },
      signal: gone.signal,
    })
  const running = await ask('mode:stream,tokens=100000,rate=200')
  const reader = running.body!.getReader()
  await reader.read()
  const queued = ask('hello').catch(() => undefined)
  await expect
    .poll(async () => (await status()).models[0])
    .toMatchObject({ status: 'warm', slots: 1, busy: 1, waiting: 1 })
  await expect.poll(async () => (await status()).models[0]!.output_tokens_per_second).toBeGreaterThan(10)
  const now = await status()
  expect(now.engines).toMatchObject([{ model_id: 'fake', state: 'ready', busy: 1, slots: 1, memory_bytes: 16 << 20 }])
  expect(now.devices.find(({ id }) => id === 'cpu')!.booked_bytes).toBe(16 << 20)
  expect(now.requests).toBe(3)
  gone.abort()
  await queued
  await expect.poll(async () => (await status()).requests).toBe(1)
})

test('unstreamed answers and durable jobs count too', async () => {
  await using app = await startApp()
  const input = async () =>
    ((await (await app.fetch('/api/system/status')).json()) as Status).models[0]!.input_tokens_per_second
  await app.fetch('/std/v1/embeddings', { body: { model: 'fake', input: 'one two three' } })
  const sync = await input()
  expect(sync).toBeGreaterThan(0)
  const job = (await (
    await app.fetch('/api/jobs', {
      body: { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'x '.repeat(500) } },
    })
  ).json()) as { id: string }
  await app.fetch(`/api/jobs/${job.id}?wait=30`)
  expect(await input()).toBeGreaterThan(sync)
})

test('a token limited to some models sees only those', async () => {
  await using app = await startApp({ models: [fakeModel('mine'), fakeModel('other')] })
  for (const model of ['mine', 'other']) await app.fetch('/std/v1/embeddings', { body: { model, input: 'wake up' } })
  const made = (await (
    await app.fetch(`/api/organizations/${app.organizationId}/tokens`, {
      body: { name: 'some', scopes: ['admin:read'], models: ['mine'] },
    })
  ).json()) as { secret: string }
  const status = (await (await app.fetch('/api/system/status', { token: made.secret })).json()) as Status
  expect(status.models.map(({ model_id }) => model_id)).toEqual(['mine'])
  expect(status.engines.map(({ model_id }) => model_id)).toEqual(['mine'])
})

test('each waiting request is listed with the reason, and can be cancelled by its id', async () => {
  await using app = await startApp({ models: [fakeModel('fake', [], { concurrency: 1 })] })
  const status = async () => (await (await app.fetch('/api/system/status')).json()) as Status
  const gone = new AbortController()
  const ask = (content: string, more: { signal?: AbortSignal } = {}) =>
    app.fetch('/std/v1/chat/completions', { body: { model: 'fake', messages: [{ role: 'user', content }] }, ...more })
  expect((await ask('hello')).status).toBe(200)
  const running = ask('mode:slow,ms=60000', { signal: gone.signal }).catch(() => undefined)
  await expect.poll(async () => (await status()).models[0]).toMatchObject({ busy: 1 })
  const waiting = [ask('hello'), ask('hello')]
  await expect.poll(async () => (await status()).waiting.length).toBe(2)
  const now = await status()
  expect(now.models[0]).toMatchObject({
    waiting: 2,
    interactive: 2,
    waiting_for: { reason: 'queue', detail: "The slot of 'fake' is busy." },
  })
  expect(now.waiting).toMatchObject([
    {
      model_id: 'fake',
      organization_id: app.organizationId,
      class: 'interactive',
      queue_position: 0,
      waiting_for: { reason: 'queue', detail: "It is next: the slot of 'fake' is busy." },
    },
    { queue_position: 1, waiting_for: { reason: 'queue', detail: '1 job goes before it.' } },
  ])
  const [first, second] = now.waiting
  const cancel = (id: string) => app.fetch(`/api/jobs/${id}/cancel`, { method: 'POST' })
  expect(await (await app.fetch(`/api/jobs/${second!.id}`)).json()).toMatchObject({
    status: 'pending',
    queue_position: 1,
    waiting_for: { reason: 'queue' },
  })
  expect((await cancel(second!.id)).status).toBe(200)
  expect((await cancel(first!.id)).status).toBe(200)
  for (const one of waiting) expect((await one).status).toBe(499)
  expect((await status()).waiting).toEqual([])
  gone.abort()
  await running
})
