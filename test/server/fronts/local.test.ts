import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
