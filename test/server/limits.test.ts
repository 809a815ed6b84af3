import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import type { Seen } from './_large.ts'
import { makeOrganization } from './_organization.ts'

const script = join(import.meta.dirname, '_large.ts')
const engine = spawn(process.execPath, [script, 'engine'], { stdio: ['ignore', 'pipe', 'inherit'] })
let app: TestApp

beforeAll(async () => {
  const port = String(((await once(engine.stdout, 'data')) as [Buffer])[0])
  app = await startApp({
    models: [
      fakeModel('fake'),
      {
        id: 'large',
        engine: 'remote',
        url: `http://127.0.0.1:${port}`,
        tasks: ['std/chat-completion', 'std/embeddings'],
        upstream_id: '256',
      },
      {
        id: '1536-floats',
        engine: 'remote',
        url: `http://127.0.0.1:${port}`,
        tasks: ['std/embeddings'],
      },
    ],
    limits: { wrong_tokens_per_minute: 5 },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  engine.kill('SIGKILL')
})

const post = (path: string, body: unknown, token = app.secret) => app.fetch(path, { body, token })
const codeOf = async (response: Response) =>
  ((await response.json()) as { error?: { code: string; message: string } }).error?.code
const embedding = { model: 'fake', input: 'a' }
const job = { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'a' } }
const together = <T>(count: number, send: (at: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, at) => send(at)))

describe('the rate of an organization', () => {
  // Six a minute refill one in ten seconds: however slow this machine is, none is refilled during a burst.
  test.each<[string, object, (secret: string, at: number) => Promise<Response>, number]>([
    ['requests', { requestsPerMinute: 6 }, secret => app.fetch('/api/me', { token: secret }), 200],
    [
      'requests that find nothing',
      { requestsPerMinute: 6 },
      secret => app.fetch('/api/jobs/x', { token: secret }),
      404,
    ],
    ['synchronous calls', { jobsPerMinute: 6 }, secret => post('/std/v1/embeddings', embedding, secret), 200],
    ['jobs', { jobsPerMinute: 6 }, secret => post('/api/jobs', job, secret), 202],
    [
      'submissions of every kind together',
      { jobsPerMinute: 6 },
      (secret, at) =>
        at % 3 === 0
          ? post('/std/v1/embeddings', embedding, secret)
          : at % 3 === 1
            ? post('/v1/embeddings', embedding, secret)
            : post('/score', { model: 'fake', text_1: 'a', text_2: 'b' }, secret),
      200,
    ],
  ])('50 clients at once, 6 a minute: 6 %s pass, 44 learn when to retry', async (_, limits, send, status) => {
    const { secret } = await makeOrganization(app, limits)
    const answers = await together(50, at => send(secret, at))
    const passed = answers.filter(answer => answer.status === status)
    const refused = answers.filter(answer => answer.status === 429)
    expect([passed.length, refused.length]).toEqual([6, 44])
    const remaining = passed.map(({ headers }) => Number(headers.get('x-ratelimit-remaining-requests')))
    expect(remaining.toSorted((a, b) => b - a)).toEqual([5, 4, 3, 2, 1, 0])
    for (const { headers } of refused) {
      const wait = Number(headers.get('retry-after-ms'))
      expect(wait).toBeGreaterThan(0)
      expect(wait).toBeLessThanOrEqual(10_000)
      expect(Number(headers.get('retry-after'))).toBe(Math.ceil(wait / 1000))
      expect(headers.get('x-ratelimit-remaining-requests')).toBe('0')
    }
    const body = (await refused[0]!.json()) as { error: Record<string, unknown> }
    expect(body.error).toMatchObject({ code: 'rate_limit', type: 'rate_limit_error', retry_after: expect.any(Number) })
  })

  test('the two kinds are counted separately, and a cancel is no submission', async () => {
    const { secret } = await makeOrganization(app, { requestsPerMinute: 3, jobsPerMinute: 1 })
    const { id } = (await (await post('/api/jobs', job, secret)).json()) as { id: string }
    expect((await post('/api/jobs', job, secret)).status).toBe(429)
    expect((await post(`/api/jobs/${id}/cancel`, {}, secret)).status).not.toBe(429)
    for (const status of [200, 200, 429])
      expect((await app.fetch(`/api/jobs/${id}`, { token: secret })).status).toBe(status)
  })

  test('is shared by all its tokens, and by no other organization', async () => {
    const { secret, organizationId } = await makeOrganization(app, { requestsPerMinute: 3 })
    const made = await post(`/api/organizations/${organizationId}/tokens`, { name: 'second' }, secret)
    const second = ((await made.json()) as { secret: string }).secret
    expect((await app.fetch('/api/me', { token: second })).status).toBe(200)
    expect((await app.fetch('/api/me', { token: secret })).status).toBe(200)
    for (const token of [secret, second]) expect((await app.fetch('/api/me', { token })).status).toBe(429)
    expect((await app.fetch('/api/me')).status).toBe(200)
  })

  test('is in the headers of every answer, in both forms', async () => {
    const { secret } = await makeOrganization(app, { requestsPerMinute: 60, jobsPerMinute: 10 })
    const submitted = await post('/std/v1/embeddings', embedding, secret)
    expect(Object.fromEntries([...submitted.headers].filter(([name]) => name.includes('ratelimit')))).toEqual({
      'x-ratelimit-limit-requests': '10',
      'x-ratelimit-remaining-requests': '9',
      'x-ratelimit-reset-requests': '6s',
      'ratelimit-policy': '"jobs";q=10;w=60, "api";q=60;w=60',
      ratelimit: '"jobs";r=9;t=6',
    })
    const asked = await app.fetch('/api/me', { token: secret })
    expect(asked.headers.get('ratelimit')).toBe('"api";r=59;t=1')
    expect(asked.headers.get('x-ratelimit-limit-requests')).toBe('60')
    const wrong = await post('/std/v1/embeddings', { model: 'fake' }, secret)
    expect([wrong.status, wrong.headers.get('ratelimit')]).toEqual([400, expect.stringMatching(/^"jobs";r=8/)])
  })

  test('of 0 is no limit, and has no headers', async () => {
    const { secret } = await makeOrganization(app, { jobsPerMinute: 5 })
    const answers = await together(50, () => app.fetch('/api/me', { token: secret }))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect([...answers[0]!.headers.keys()].filter(name => name.includes('ratelimit'))).toEqual(['ratelimit-policy'])
    expect(answers[0]!.headers.get('ratelimit-policy')).toBe('"jobs";q=5;w=60')
    const { headers } = await app.fetch('/api/me')
    expect([...headers.keys()].filter(name => name.includes('ratelimit'))).toEqual([])
  })

  test('accepts a caller that waits as long as the header says', async () => {
    const { secret } = await makeOrganization(app, { requestsPerMinute: 120 })
    let answer = await app.fetch('/api/me', { token: secret })
    while (answer.status === 200) answer = await app.fetch('/api/me', { token: secret })
    await new Promise(resolve => setTimeout(resolve, Number(answer.headers.get('retry-after-ms'))))
    expect((await app.fetch('/api/me', { token: secret })).status).toBe(200)
  })

  test('is not used up by refused requests', async () => {
    const { secret } = await makeOrganization(app, { requestsPerMinute: 2, scopes: ['user:read'] })
    for (let time = 0; time < 5; time++) expect((await app.fetch('/metrics', { token: secret })).status).toBe(403)
    expect((await app.fetch('/api/me', { token: secret })).status).toBe(200)
  })
})

test('50 wrong tokens from one address: 5 are answered, then it must wait; right ones always pass', async () => {
  const wrong = `sk-infer-${'a'.repeat(12)}-${'b'.repeat(49)}`
  const [guesses, right, missing] = await Promise.all([
    together(50, at => app.fetch('/api/me', { token: at % 2 ? wrong : `${at}` })),
    together(50, () => app.fetch('/api/me')),
    together(20, () => app.fetch('/api/me', { token: null })),
  ])
  expect(guesses.filter(({ status }) => status === 401)).toHaveLength(5)
  const refused = guesses.filter(({ status }) => status === 429)
  expect(refused).toHaveLength(45)
  expect(Number(refused[0]!.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(await codeOf(refused[0]!)).toBe('rate_limit')
  expect(new Set(right.map(({ status }) => status))).toEqual(new Set([200]))
  expect(new Set(missing.map(({ status }) => status))).toEqual(new Set([401]))
  // A revoked or expired token is no guess.
  const { secret } = await makeOrganization(app, { expiresAt: 1 })
  expect(await codeOf(await app.fetch('/api/me', { token: secret }))).toBe('token_expired')
})

describe('the shape of a body', () => {
  const chat = (more: string) => `{"model":"fake","messages":[{"role":"user","content":"Hello"}],${more}}`
  const nested = (depth: number) => chat(`"metadata":{"a":${'['.repeat(depth - 2)}${']'.repeat(depth - 2)}}`)
  const keyed = (keys: number) =>
    chat(`"metadata":{${Array.from({ length: keys - 5 }, (_, at) => `"k${at}":0`).join()}}`)
  const inputs = (depth: number) =>
    `{"task":"std/chat-completion","model_id":"fake","inputs":{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","x":${'['.repeat(depth - 6)}${']'.repeat(depth - 6)}}}}]}}`

  test.each<[string, string, string, number, RegExp]>([
    ['64 deep', '/std/v1/chat/completions', nested(64), 200, /./],
    ['65 deep', '/std/v1/chat/completions', nested(65), 400, /deeper than 64/],
    ['100,000 deep', '/std/v1/chat/completions', nested(100_000), 400, /deeper than 64/],
    ['10,000 members', '/std/v1/chat/completions', keyed(10_000), 200, /./],
    ['10,001 members', '/std/v1/chat/completions', keyed(10_001), 400, /more than 10000 members/],
    ['a million members', '/std/v1/chat/completions', keyed(1_000_000), 400, /more than 10000 members/],
    ['64 deep for a job', '/api/jobs', inputs(64), 202, /./],
    ['65 deep for a job', '/api/jobs', inputs(65), 400, /deeper than 64/],
    [
      'brackets in a text are not depth',
      '/api/jobs',
      inputs(7).replace('"a"', JSON.stringify('[{:"'.repeat(5000))),
      202,
      /./,
    ],
    [
      'a MiB for a job',
      '/api/jobs',
      inputs(7).replace('"a"', `"${'a'.repeat(2 ** 20 - inputs(7).length + 1)}"`),
      202,
      /./,
    ],
    ['a byte more than what is usual', '/slug/requests/batch', `"${'a'.repeat(2 ** 20 - 1)}"`, 413, /1024 KiB/],
  ])('%s', async (_, path, body, status, says) => {
    const response = await post(path, body)
    const text = await response.text()
    expect(response.status, text.slice(0, 300)).toBe(status)
    expect(text).toMatch(says)
  })
})

describe('large bodies', () => {
  async function beside(role: string, ...more: string[]): Promise<Seen> {
    const delay = monitorEventLoopDelay({ resolution: 2 })
    delay.enable()
    const { stdout } = await promisify(execFile)(process.execPath, [script, role, app.url, app.secret, ...more])
    delay.disable()
    const seen = JSON.parse(stdout) as Seen
    const [p99, longest] = [delay.percentile(99) / 1e6, delay.max / 1e6]
    process.stdout.write(
      `${role} ${more.join(' ')}: ${seen.status} in ${Math.round(seen.ms)} ms; event loop p99 ${p99.toFixed(1)} ms, longest ${longest.toFixed(1)} ms\n`,
    )
    expect(p99).toBeLessThan(500)
    return seen
  }

  test('a chat of 32 MiB reaches the engine unchanged', async () => {
    const { status, answer, sent } = await beside('chat', String(32 << 20))
    expect([status, answer]).toEqual([200, sent])
  })

  test('one byte more is refused', async () => {
    const { status, answer } = await beside('chat', String((32 << 20) + 1))
    expect([status, answer]).toEqual([413, expect.stringContaining('32768 KiB')])
  })

  test('an endless one is cut off after the refusal', async () => {
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1')
    const closed = new Promise(done => socket.once('close', done))
    let told = ''
    socket.on('data', (data: Buffer) => (told += data.toString())).on('error', () => {})
    socket.write(
      `POST /api/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${app.secret}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    )
    const block = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(1 << 20, 'x'), Buffer.from('\r\n')])
    let sent = 0
    const pour = () => {
      while (!socket.destroyed && socket.write(block)) sent++
      sent++
    }
    socket.on('drain', pour)
    pour()
    await closed
    expect(told).toMatch(/^HTTP\/1\.1 413/)
    expect(sent).toBeGreaterThan(2)
    expect(sent).toBeLessThan(200)
  })

  test('2,048 embeddings are in the order of the inputs', async () => {
    const { status, answer } = await beside('embed', 'large', '256')
    expect([status, answer]).toEqual([200, '2048 of 2048 right'])
  })

  test('2,048 embeddings of 1,536 numbers as text have twice the byte limit of any other answer', async () => {
    const { status, answer } = await beside('embed', '1536-floats', '1536')
    expect([status, answer]).toEqual([200, '2048 of 2048 right'])
  })

  test('2,049 are refused', async () => {
    const input = Array.from({ length: 2049 }, () => 'a')
    const response = await post('/std/v1/embeddings', { model: 'fake', input })
    expect([response.status, await codeOf(response)]).toEqual([400, 'array_above_max_length'])
  })

  test('many at once do not block small ones', async () => {
    let small = 0
    const large = together(4, () => beside('chat', String(8 << 20)))
    const done = new AbortController()
    void large.finally(() => done.abort())
    while (!done.signal.aborted) {
      expect((await post('/std/v1/embeddings', embedding)).status).toBe(200)
      small++
    }
    for (const { status, answer, sent } of await large) expect([status, answer]).toEqual([200, sent])
    process.stdout.write(`${small} small requests beside four of 8 MiB\n`)
  })
})
