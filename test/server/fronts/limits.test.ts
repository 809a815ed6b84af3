import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'

const chatPath = '/std/v1/chat/completions'
describe('limits of an app with two gateway processes', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      gateway_processes: 2,
      models: [
        fakeModel('fake', [], { concurrency: 64 }),
        fakeModel('priced', [], { concurrency: 64, price: { input_per_million_tokens: 1e6 } }),
      ],
    })
  })
  afterAll(async () => app[Symbol.asyncDispose]())

  const base = () => `/api/organizations/${app.organizationId}/tokens`
  const json = async <T>(path: string, body?: object): Promise<T> =>
    (await (await app.fetch(path, body ? { body } : {})).json()) as T
  /** Requests that gateway processes have answered themselves, once they have told of all. */
  async function answeredByFronts(): Promise<number> {
    await json('/api/jobs/job_00000000000000000000000000')
    const text = await (await app.fetch('/metrics')).text()
    return Number(/^infer_front_requests_total (\d+)$/m.exec(text)![1])
  }
  const create = (limits: object) =>
    json<{ secret: string; token: { id: string } }>(base(), {
      name: 'limited',
      scopes: ['user:read', 'user:write'],
      ...limits,
    })
  const say = (token: string, { content = 'Hello', ...more }: { content?: string; [field: string]: unknown } = {}) =>
    app.fetch(chatPath, { token, body: { model: 'fake', messages: [{ role: 'user', content }], ...more } })
  const streamed = { content: 'mode:stream,tokens=100000,rate=20', stream: true }

  /** Sends chats one after the other until a gateway process answers one. Returns how many it sent. */
  async function warm(token: string, more: Parameters<typeof say>[1] = {}): Promise<number> {
    const before = await answeredByFronts()
    for (let sent = 1; sent <= 100; sent++) {
      const answer = await say(token, more)
      expect(answer.status, await answer.text()).toBe(200)
      if ((await answeredByFronts()) > before) return sent
    }
    throw new Error('No gateway process has answered.')
  }

  /** Sends chats, 16 at a time, until so many are sent. Returns the statuses. */
  async function load(token: string, count: number, more: Parameters<typeof say>[1] = {}): Promise<number[]> {
    const statuses: number[] = []
    let sent = 0
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        while (sent++ < count) {
          const answer = await say(token, more)
          await answer.text()
          statuses.push(answer.status)
        }
      }),
    )
    return statuses
  }

  test('a token has its submissions a minute, which gateway processes answer, and not one more', async () => {
    const startedAt = performance.now()
    const { secret } = await create({ rate_limit: { jobs: 600 } })
    const before = await answeredByFronts()
    const sent = await warm(secret)
    const answer = await say(secret)
    expect(answer.headers.get('x-ratelimit-limit-requests')).toBe('600')
    expect(Number(answer.headers.get('x-ratelimit-remaining-requests'))).toBeGreaterThan(500)
    await answer.text()

    const statuses = await load(secret, 900)
    // At once: one every 100 ms is admitted.
    const last = await Promise.all(Array.from({ length: 32 }, () => say(secret)))
    const refused = last.find(({ status }) => status === 429)
    const passedMs = performance.now() - startedAt
    const admitted = sent + 1 + [...statuses, ...last.map(one => one.status)].filter(status => status === 200).length
    expect([...new Set(statuses)].toSorted((a, b) => a - b)).toEqual([200, 429])
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
    // Up to 15 that were admitted before may be answered after it.
    expect(statuses.indexOf(429) + sent + 1).toBeGreaterThanOrEqual(600 - 15)
    expect(admitted).toBeGreaterThanOrEqual(600)
    expect(admitted).toBeLessThanOrEqual(600 + passedMs / 100)
    expect((await answeredByFronts()) - before).toBeGreaterThan(100)
  })

  test('as many requests are open as a token may have, whichever processes they reach', async () => {
    const { secret } = await create({ concurrent_requests: 8 })
    await warm(secret)
    // Control answers those with a preference: it waits for what gateway processes do not use.
    const preferring = { method: 'POST', token: secret, headers: { prefer: 'wait=30' } }
    const body = { model: 'fake', messages: [{ role: 'user', content: streamed.content }], stream: true }
    const inControl = await Promise.all(Array.from({ length: 8 }, () => app.fetch(chatPath, { ...preferring, body })))
    expect(inControl.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
    expect((await say(secret)).status).toBe(429)
    await Promise.all(inControl.map(answer => answer.body!.cancel()))
    await expect.poll(async () => (await say(secret)).status).toBe(200)
    await warm(secret)

    const answers = await Promise.all(Array.from({ length: 24 }, () => say(secret, streamed)))
    const open = answers.filter(({ status }) => status === 200)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(16)
    expect(open).toHaveLength(8)
    await app.fetch(`/api/jobs/${open[0]!.headers.get('x-job-id')}/cancel`, { body: {} })
    await open[0]!.text()
    await expect.poll(async () => (await say(secret)).status).toBe(200)
    await Promise.all(open.slice(1).map(({ body }) => body!.cancel()))
  })

  test('tokens of models a minute are counted in all processes', async () => {
    const startedAt = performance.now()
    const { secret } = await create({ tokens_per_minute: 60_000 })
    const long = { content: 'a '.repeat(500) }
    const before = await answeredByFronts()
    const sent = await warm(secret, long)
    const statuses = await load(secret, 240, long)
    const answers = sent + statuses.filter(status => status === 200).length
    const refilled = performance.now() - startedAt
    // Later requests may be answered again: a thousand tokens come back every second.
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    expect((await answeredByFronts()) - before).toBeGreaterThan(20)
    // Each has 500 tokens and its answer. Those that run when the last token is used are answered.
    expect(answers * 500).toBeGreaterThan(50_000)
    expect(answers * 500).toBeLessThan(60_000 + refilled + 32 * 500)
  })

  test('a spend limit is used up, and passed by less than one request', async () => {
    const limit = 100_000
    const { secret } = await create({ monthly_spend_limit: limit })
    // 500 tokens; the most that it may cost are its bytes.
    const priced = { model: 'priced', content: 'a '.repeat(500) }
    const before = await answeredByFronts()
    await warm(secret, priced)
    expect(new Set(await load(secret, 240, priced))).toEqual(new Set([200, 429]))
    // What the last credits held is there again.
    let refused = await say(secret, priced)
    for (let more = 0; more < 100 && refused.status === 200; more++) refused = await say(secret, priced)
    const { error } = (await refused.json()) as { error: { code: string } }
    expect([refused.status, error.code]).toEqual([429, 'quota_exceeded'])
    expect((await answeredByFronts()) - before).toBeGreaterThan(50)
    const me = (await (await app.fetch('/api/me', { token: secret })).json()) as {
      spend: { token: { spent: number; held: number } }
    }
    expect(me.spend.token.held).toBe(0)
    expect(me.spend.token.spent).toBeGreaterThanOrEqual(limit)
    expect(me.spend.token.spent).toBeLessThan(limit + 1_100)
  })
})
