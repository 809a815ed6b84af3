import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openAdminStore } from '../../../core/store/sqlite/admin.ts'
import { theServer } from '../../../core/store/store.ts'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { frontPids } from './_fronts.ts'

const chatPath = '/std/v1/chat/completions'
const endless = 'mode:stream,tokens=100000,rate=50'

interface Job {
  id: string
  status: string
  error: { message: string } | null
}

describe('an app whose gateway processes answer themselves', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      gateway_processes: 2,
      models: [
        fakeModel('fake', [], { concurrency: 64 }),
        fakeModel('narrow', [], { concurrency: 1 }),
        fakeModel('fragile', [], { concurrency: 8 }),
        fakeModel('hasty', [], { concurrency: 1, dispatch_wait_ms: 200 }),
        fakeModel('other', [], { concurrency: 2, price: { input_per_million_tokens: 1e6 } }),
      ],
    })
  })
  afterAll(async () => app[Symbol.asyncDispose]())

  const metric = async (name: string): Promise<number> => {
    const text = await (await app.fetch('/metrics')).text()
    return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)![1])
  }
  const json = async <T>(path: string, body?: object): Promise<T> =>
    (await (await app.fetch(path, body ? { body } : {})).json()) as T
  const jobOf = (answer: Response) => json<Job>(`/api/jobs/${answer.headers.get('x-job-id')}`)
  const say = (content: string, { token = app.secret, ...more }: { token?: string; [field: string]: unknown } = {}) =>
    app.fetch(chatPath, { token, body: { model: 'fake', messages: [{ role: 'user', content }], ...more } })
  const read = async (answer: Response) => Buffer.from((await answer.body!.getReader().read()).value ?? []).toString()

  /** Sends chats at a time until the gateway processes answer so many of them. */
  async function warm(more: Parameters<typeof say>[1] = {}, count = 8): Promise<void> {
    await expect
      .poll(
        async () => {
          const before = await metric('infer_front_requests_total')
          const answers = await Promise.all(Array.from({ length: count }, () => say('Hello', more)))
          const statuses = answers.map(({ status }) => status)
          await json('/api/jobs/job_00000000000000000000000000')
          return [...new Set(statuses), (await metric('infer_front_requests_total')) - before]
        },
        { interval: 100 },
      )
      .toEqual([200, count])
  }

  test('a chat has its headers, its record at once, and counts', async () => {
    await warm()
    const answer = await say('Hello')
    expect(answer.headers.get('x-model-status')).toBe('warm')
    expect(await jobOf(answer)).toMatchObject({ status: 'completed' })
    const text = await (await app.fetch('/metrics')).text()
    const series = text
      .split('\n')
      .filter(line => line.startsWith('infer_http_requests_total') && line.includes(chatPath))
    expect(series).toHaveLength(1)
  })

  test('many chats need few messages', async () => {
    await warm()
    const startedAt = performance.now()
    const before = await metric('infer_front_messages_total')
    for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 20 }, () => say('Hello')))
    const messages = (await metric('infer_front_messages_total')) - before
    // Each of the two processes sends one every 50 ms at most.
    expect(messages).toBeLessThan(100 + (performance.now() - startedAt) / 25)
  })

  test('what it cannot answer, control answers: a wrong body, an unknown model, a key', async () => {
    await warm()
    expect((await app.fetch(chatPath, { body: '{"model":' })).status).toBe(400)
    expect((await say('x', { model: 'nobody' })).status).toBe(404)
    const key = { 'idempotency-key': 'one' }
    const once = () =>
      app.fetch(chatPath, { headers: key, body: { model: 'fake', messages: [{ role: 'user', content: 'Hello' }] } })
    expect(await (await once()).text()).toBe(await (await once()).text())
  })

  test.each<[title: string, path: string, body: object, has: string]>([
    [
      'a message of Anthropic',
      '/anthropic/v1/messages',
      { max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] },
      '"type":"message"',
    ],
    ['a chat of Cohere', '/std/v2/chat', { messages: [{ role: 'user', content: 'Hello' }] }, '"finish_reason"'],
    ['vectors of Cohere', '/std/v2/embed', { texts: ['Hello'], embedding_types: ['float'] }, '"embeddings"'],
    ['a chat of Ollama', '/ollama/api/chat', { messages: [{ role: 'user', content: 'Hello' }] }, '"done":true'],
    ['a text of Ollama', '/ollama/api/generate', { prompt: 'Hello', stream: false }, '"done":true'],
    ['a response that is not kept', '/std/v1/responses', { input: 'Hello', store: false }, '"object":"response"'],
    [
      'a body for a thread',
      chatPath,
      { messages: [{ role: 'user', content: `Hello ${'x'.repeat(200_000)}` }] },
      '"chat.completion"',
    ],
  ])('%s is answered without control', async (_, path, body, has) => {
    await warm()
    const before = await metric('infer_front_requests_total')
    const answers = await Promise.all(
      Array.from({ length: 4 }, async () => (await app.fetch(path, { body: { model: 'fake', ...body } })).text()),
    )
    for (const text of answers) expect(text).toContain(has)
    expect((await metric('infer_front_requests_total')) - before).toBe(4)
  })

  test('a response that is kept, what continues it, and a model that Ollama loads are for control', async () => {
    await warm()
    const respond = async (more: object) => {
      const answer = await app.fetch('/std/v1/responses', { body: { model: 'fake', input: 'Hello', ...more } })
      return (await answer.json()) as { id: string; status: string }
    }
    const kept = await respond({})
    expect(await json(`/std/v1/responses/${kept.id}`)).toMatchObject({ id: kept.id, status: 'completed' })
    expect((await respond({ previous_response_id: kept.id, store: false })).status).toBe('completed')
    expect((await respond({ background: true })).status).toMatch(/queued|in_progress/)
    const loaded = await app.fetch('/ollama/api/chat', { body: { model: 'fake', messages: [], stream: false } })
    expect(await loaded.json()).toMatchObject({ done_reason: 'load' })
  })

  test('a large body that is refused, or has images, reaches control whole', async () => {
    await warm()
    const large = 'x'.repeat(100_000)
    const refused = await say(large, { temperature: 'hot' })
    expect(await refused.json()).toMatchObject({ error: { param: 'temperature' } })
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
    const content = [{ type: 'text', text: large }, image]
    const wrong = await app.fetch(chatPath, { body: { model: 'fake', messages: [{ role: 'user', content }] } })
    expect(await wrong.json()).toMatchObject({ error: { code: 'invalid_image' } })
  })

  test('an engine that refuses is answered and recorded once', async () => {
    await warm()
    const answer = await say('mode:status,code=400,text=no')
    expect(answer.status).toBe(400)
    expect(await jobOf(answer).catch(() => null)).toBeTruthy()
  })

  test('a stream can be found and cancelled while it runs', async () => {
    await warm()
    const answer = await say(endless, { stream: true })
    await read(answer)
    expect(await jobOf(answer)).toMatchObject({ status: 'processing' })
    const id = answer.headers.get('x-job-id')!
    expect(await json(`/api/jobs/${id}/cancel`, {})).toMatchObject({ status: 'cancelled' })
    expect(await jobOf(answer)).toMatchObject({ status: 'cancelled' })
  })

  test('whose engine a request ends: control tries it alone, and answers those that ran beside it', async () => {
    await warm({ model: 'fragile' })
    const frontsBefore = await metric('infer_front_requests_total')
    const [poison, ...others] = await Promise.all([
      say('mode:segfault,ms=200', { model: 'fragile' }),
      ...[1, 2, 3].map(() => say('mode:slow,ms=600', { model: 'fragile' })),
    ])
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200])
    expect([poison.status, await poison.text()]).toEqual([502, expect.stringContaining('SIGSEGV')])
    // None of them was answered in a front.
    expect(await metric('infer_front_requests_total')).toBe(frontsBefore)
    // One beside others, which is not charged, and three alone.
    expect(await metric('infer_engine_failures_total\\{model="fragile"\\}')).toBe(4)
  })

  test('a revoked token is refused by every process once the answer to the revocation is there', async () => {
    const tokens = `/api/organizations/${app.organizationId}/tokens`
    const { secret: token, token: created } = await json<{ secret: string; token: { id: string } }>(tokens, {
      name: 'short-lived',
      scopes: ['user:read', 'user:write'],
    })
    await warm({ token })
    expect((await app.fetch(`${tokens}/${created.id}/revoke`, { body: {} })).status).toBe(200)
    const answers = await Promise.all(Array.from({ length: 16 }, () => say('Hello', { token })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]))
  })

  test('a request that waits gets the slots that gateway processes do not use, and an unload ends the engine', async () => {
    await warm({ model: 'other' }, 1)
    const answers = await Promise.all(Array.from({ length: 12 }, () => say('Hello', { model: 'other' })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await app.fetch('/api/models/other/unload', { body: {} })).status).toBe(200)
    expect((await say('Hello', { model: 'other' })).status).toBe(200)
  })

  const waitingCalls = async () =>
    (await json<{ waiting: { id: string; model_id: string }[] }>('/api/system/status')).waiting

  test('a token that another process revokes is refused within a moment', async () => {
    const tokens = `/api/organizations/${app.organizationId}/tokens`
    const { secret: token, token: created } = await json<{ secret: string; token: { id: string } }>(tokens, {
      name: 'elsewhere',
      scopes: ['user:read', 'user:write'],
    })
    await warm({ token })
    const store = await openAdminStore(app.dataDir)
    await store.tokens.revoke(app.organizationId, created.id, Date.now(), theServer)
    await store.close()
    const revokedAt = performance.now()
    await expect.poll(async () => (await say('Hello', { token })).status, { interval: 10 }).toBe(401)
    expect(performance.now() - revokedAt).toBeLessThan(1_000)
  })

  test('calls without a free slot wait in the queue of control, and their gateway processes answer them', async () => {
    await warm()
    const before = await metric('infer_front_requests_total')
    const answers = await Promise.all(Array.from({ length: 8 }, () => say('mode:slow,ms=30', { model: 'narrow' })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const waited = answers.map(({ headers }) => Number(headers.get('x-queue-ms')))
    expect(waited.filter(ms => ms >= 25).length).toBeGreaterThanOrEqual(6)
    for (const answer of answers) expect(await jobOf(answer)).toMatchObject({ status: 'completed' })
    expect((await metric('infer_front_requests_total')) - before).toBe(8)
  })

  test('a call that waits is listed, can be cancelled, and leaves the queue with its client', async () => {
    await warm()
    const holder = await say(endless, { model: 'narrow', stream: true })
    await read(holder)
    const answer = say('Hello', { model: 'narrow' })
    await expect.poll(async () => (await waitingCalls()).length).toBe(1)
    const [{ id, model_id }] = (await waitingCalls()) as [{ id: string; model_id: string }]
    expect(model_id).toBe('narrow')
    expect(await json<Job>(`/api/jobs/${id}`)).toMatchObject({ status: 'pending' })
    expect(await json(`/api/jobs/${id}/cancel`, {})).toMatchObject({ status: 'cancelled' })
    expect((await answer).status).toBe(499)
    expect(await waitingCalls()).toEqual([])

    const leaving = new AbortController()
    const body = { model: 'narrow', messages: [{ role: 'user', content: 'Hello' }] }
    const left = app.fetch(chatPath, { body, signal: leaving.signal }).catch(() => undefined)
    await expect.poll(async () => (await waitingCalls()).length).toBe(1)
    leaving.abort()
    await left
    await expect.poll(waitingCalls).toEqual([])

    const next = say('Hello', { model: 'narrow' })
    await app.fetch(`/api/jobs/${holder.headers.get('x-job-id')}/cancel`, { body: {} })
    expect((await next).status).toBe(200)
  })

  test('a call that waits too long is refused as in one process', async () => {
    await warm()
    await expect.poll(async () => (await say('Hello', { model: 'hasty' })).status).toBe(200)
    const holder = await say(endless, { model: 'hasty', stream: true })
    await read(holder)
    const refused = await say('Hello', { model: 'hasty' })
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({
      error: { code: 'no_capacity', message: expect.stringContaining("All slots of 'hasty' are busy") },
    })
    await app.fetch(`/api/jobs/${holder.headers.get('x-job-id')}/cancel`, { body: {} })
  })

  test('the slot of a call that waited is free again when its gateway process is killed, and what waits there is gone', async () => {
    await warm()
    const holder = await say(endless, { model: 'narrow', stream: true })
    await read(holder)
    const lost = Array.from({ length: 4 }, () => say('Hello', { model: 'narrow' }).catch(() => undefined))
    await expect.poll(async () => (await waitingCalls()).length).toBe(4)
    const ended = app.logged('A gateway process ended')
    for (const pid of frontPids()) process.kill(pid, 'SIGKILL')
    await ended
    await Promise.all(lost)
    await expect.poll(async () => (await say('Hello', { model: 'narrow' }).catch(() => undefined))?.status).toBe(200)
    expect(await waitingCalls()).toEqual([])
    app.errors.length = 0
  })

  test('calls of a gateway process that is killed have failed, and its slots are free again', async () => {
    await warm()
    const streams = await Promise.all(Array.from({ length: 16 }, () => say(endless, { stream: true })))
    await Promise.all(streams.map(read))
    for (const stream of streams) await jobOf(stream)
    const ended = app.logged('A gateway process ended')
    process.kill(frontPids()[0]!, 'SIGKILL')
    await ended
    app.errors.length = 0
    const jobs = await Promise.all(streams.map(jobOf))
    const failed = jobs.filter(({ status }) => status === 'failed')
    expect(failed.length).toBeGreaterThan(0)
    for (const { error } of failed) expect(error!.message).toContain('Its gateway process ended')
    for (const { id, status } of jobs)
      if (status === 'processing') await app.fetch(`/api/jobs/${id}/cancel`, { body: {} })
    expect((await say('Hello')).status).toBe(200)
  })
})

test('a server that stops ends the streams of its gateway processes with an error, and records them', async () => {
  const app = await startApp({ gateway_processes: 2, models: [fakeModel('fake', [], { concurrency: 8 })] })
  const say = (stream: boolean) =>
    app.fetch(chatPath, {
      body: { model: 'fake', messages: [{ role: 'user', content: stream ? endless : 'Hello' }], stream },
    })
  await expect
    .poll(async () => {
      for (let sent = 0; sent < 6; sent++) await (await say(false)).text()
      return Number(/^infer_front_requests_total (\d+)$/m.exec(await (await app.fetch('/metrics')).text())![1])
    })
    .toBeGreaterThan(3)
  const streams = await Promise.all(Array.from({ length: 4 }, () => say(true)))
  const texts = streams.map(stream => stream.text())
  await app[Symbol.asyncDispose]()
  for (const text of await Promise.all(texts)) expect(text).toContain('"code":"shutting_down"')
})
