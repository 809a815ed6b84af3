import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { fakeEngine, fakeNeeds } from '../_app.ts'
import { startEngine } from '../_engine.ts'
import { full } from '../_full.ts'
import { type Home, metric, openHome, type Server, say, until } from './_home.ts'

/** How often a loaded server is stopped: after 0, 20, 40 and 60 answers, and again. */
const drains = full ? 10 : 4
const chatPath = '/std/v1/chat/completions'
const chat = (content: string, more: object = {}) => ({ model: 'near', messages: [{ role: 'user', content }], ...more })

/** A local engine with a grandchild process, and a remote engine for the jobs. */
const models = (farUrl: string) => [
  {
    id: 'near',
    engine: 'custom',
    ...fakeNeeds,
    command: [process.execPath, fakeEngine, '--port', '{port}', '--grandchild'],
    devices: 'cpu',
    memory: '16MiB',
    stop_grace: '500ms',
  },
  { id: 'far', engine: 'remote', url: `${farUrl}/v1`, concurrency: 4 },
]

/** Begins a request whose body is not complete. */
async function halfSent(server: Server, home: Home, body: object): Promise<{ request: ClientRequest; rest: Buffer }> {
  const bytes = Buffer.from(JSON.stringify(body))
  const half = Math.floor(bytes.length / 2)
  const headers = {
    authorization: `Bearer ${home.secret()}`,
    'content-type': 'application/json',
    'content-length': bytes.length,
  }
  const started = request(server.url + chatPath, { method: 'POST', headers, agent: false })
  await new Promise(sent => started.write(bytes.subarray(0, half), sent))
  return { request: started, rest: bytes.subarray(half) }
}

async function finished({ request: started, rest }: Awaited<ReturnType<typeof halfSent>>) {
  started.end(rest)
  const [response] = (await once(started, 'response')) as [IncomingMessage]
  return { status: response.statusCode, body: await text(response) }
}

/** The result for a client with a new connection: the status of the answer, or the code of the error. */
async function newcomer(server: Server, home: Home, path: string, body: object) {
  const headers = { authorization: `Bearer ${home.secret()}`, 'content-type': 'application/json' }
  const asking = request(server.url + path, { method: 'POST', headers, agent: false })
  asking.end(JSON.stringify(body))
  try {
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    const answer = JSON.parse(await text(response)) as { id: string; error?: { code: string } }
    return { met: response.statusCode!, answer, retryAfter: response.headers['retry-after'] }
  } catch (cause) {
    return { met: (cause as NodeJS.ErrnoException).code ?? String(cause) }
  }
}

test.each<Record<string, string>>(full ? [{ CI: '1' }, {}] : [{}])(
  'SIGTERM lets what runs finish and gives the rest back (environment %o)',
  {
    timeout: 120_000,
  },
  async env => {
    await using stuck = await startEngine()
    await using prompt = await startEngine(['--instant'])
    await using home = openHome()
    home.configure({ models: models(stuck.url) })
    const server = home.serve(['--drain-timeout', '4s'], env)
    await server.ready
    expect((await server.fetch(chatPath, { body: chat('Hello') })).status).toBe(200)

    // Open at the signal: jobs that hang, an upload, a connection that has begun a request, a slow answer and a stream.
    const ids: string[] = []
    for (let n = 0; n < 40; n++) {
      const inputs = { messages: [{ role: 'user', content: 'mode:silent' }] }
      const answer = await server.fetch('/api/jobs', { body: { task: 'std/chat-completion', model_id: 'far', inputs } })
      ids.push(((await answer.json()) as { id: string }).id)
    }
    await stuck.until(({ running }) => running === 4)
    const upload = await halfSent(server, home, chat('Hello', { user: 'x'.repeat(2000) }))
    const late = connect(Number(new URL(server.url).port), '127.0.0.1')
    await once(late, 'connect')
    late.write('GET /std/v1/models HTTP/1.1\r\n')
    const slow = server.fetch(chatPath, { body: chat('mode:slow,ms=1500') })
    const stream = await server.fetch(chatPath, { body: chat('mode:stream,tokens=40,rate=30', { stream: true }) })
    await until('two answers on their way', async () => (await metric(server, 'infer_leases', 'near')) === 2)
    expect(home.processes().length).toBeGreaterThanOrEqual(3)

    const signalled = performance.now()
    server.kill('SIGTERM')
    await until('the server stopping', () => server.err().includes('"Stopping"'))
    late.write(`Host: 127.0.0.1\r\nAuthorization: Bearer ${home.secret()}\r\n\r\n`)
    const refused = await text(late)
    expect(refused).toMatch(/^HTTP\/1\.1 503 /)
    expect(refused).toMatch(/^retry-after: \d+\r$/im)
    expect(refused).toContain('"code":"shutting_down"')
    const { met, retryAfter } = await newcomer(server, home, chatPath, chat('Hello'))
    expect([met, Number(retryAfter) > 0]).toEqual([503, true])

    const uploaded = await finished(upload)
    expect([uploaded.status, uploaded.body]).toEqual([200, expect.stringContaining('Hello from the fake engine')])
    const streamed = await stream.text()
    expect(streamed.match(/token\d+ /g)).toHaveLength(40)
    expect(streamed.trimEnd().endsWith('data: [DONE]')).toBe(true)
    expect(await (await slow).json()).toMatchObject({ object: 'chat.completion' })
    const answeredMs = performance.now() - signalled
    expect(await server.ended).toEqual({ code: 0, signal: null })
    const endedMs = performance.now() - signalled
    expect(home.processes()).toEqual([])
    expect(endedMs).toBeGreaterThan(3_900)
    expect(endedMs).toBeLessThan(20_000)
    say(
      `drain: answers complete after ${Math.round(answeredMs)} ms, server gone after ${Math.round(endedMs)} of 4000 ms`,
    )

    // With an engine that answers: every job still exists, and the interrupted attempt is charged to nobody.
    home.configure({ models: models(prompt.url) })
    const next = home.serve()
    await next.ready
    for (const id of ids) {
      const job = await (await next.fetch(`/api/jobs/${id}?wait=30`)).json()
      expect(job).toMatchObject({ id, status: 'completed', attempts: 1 })
    }
    expect(await metric(next, 'infer_jobs', 'completed')).toBe(ids.length)
    expect(await metric(next, 'infer_ledger_rows_total')).toBe(ids.length + 4)
  },
)

test('a drain under load answers requests that reached an engine, refuses the others, and loses or charges no job', {
  timeout: 120_000,
}, async () => {
  await using engine = await startEngine()
  await using home = openHome()
  home.configure({ models: [{ id: 'far', engine: 'remote', url: `${engine.url}/v1`, concurrency: 16 }] })
  const met = new Map<number | string, number>()
  const ids: string[] = []

  /**
   * Sends requests until the server closes the connection. Resets in 50 drains with 16 such clients: 171 where the
   * listener closes first, 0 where it closes last. The cost is borne by clients that ignore the 503 and reconnect at
   * once: 143 and 549.
   */
  async function client(server: Server, submits: boolean): Promise<void> {
    for (let n = 0; ; n++) {
      const messages = [{ role: 'user', content: `mode:slow,ms=${5 + ((n * 7) % 40)}` }]
      const one = await (submits
        ? newcomer(server, home, '/api/jobs', { task: 'std/chat-completion', model_id: 'far', inputs: { messages } })
        : newcomer(server, home, chatPath, { model: 'far', messages }))
      met.set(one.met, (met.get(one.met) ?? 0) + 1)
      if (one.met === 202) ids.push(one.answer!.id)
      if (one.met === 503) expect(one.answer!.error!.code).toBe('shutting_down')
      if (one.met !== 200 && one.met !== 202) return
    }
  }

  for (let round = 0; round < drains; round++) {
    const server = home.serve([], round % 2 ? { CI: '1' } : {})
    await server.ready
    const { finished } = await engine.stats()
    const clients = Promise.all(Array.from({ length: 12 }, (_, name) => client(server, name % 4 === 0)))
    await until('some work', async () => (await engine.stats()).finished > finished + 20 * (round % 4))
    server.kill('SIGTERM')
    expect(await server.ended).toEqual({ code: 0, signal: null })
    await clients
  }
  const server = home.serve()
  await server.ready
  for (const id of ids) {
    const job = await (await server.fetch(`/api/jobs/${id}?wait=30`)).json()
    expect(job).toMatchObject({ id, status: 'completed', attempts: 1 })
  }
  // No work was done for clients that connected too late; their number depends on the machine.
  const kinds = [...met.keys()].filter(what => !['ECONNREFUSED', 'ECONNRESET'].includes(String(what)))
  expect(new Set(kinds)).toEqual(new Set([200, 202, 503]))
  const done = met.get(200)! + ids.length
  expect((await engine.stats()).requests).toBe(done)
  expect(await metric(server, 'infer_jobs')).toBe(ids.length)
  expect(await metric(server, 'infer_ledger_rows_total')).toBe(done)
  say(`drains under load: ${drains}; met ${[...met].map(([what, times]) => `${what} × ${times}`).join(', ')}`)
})

test('after the drain timeout a stream ends with an error frame without [DONE], an open request with 503', async () => {
  await using home = openHome()
  home.configure({ models: models('http://127.0.0.1:9') })
  const server = home.serve(['--drain-timeout', '500ms'])
  await server.ready
  const stream = await server.fetch(chatPath, { body: chat('mode:stream,tokens=2000,rate=20', { stream: true }) })
  const silentStream = server.fetch(chatPath, { body: chat('mode:silent', { stream: true }) })
  const silent = server.fetch(chatPath, { body: chat('mode:silent') })
  const refusals = Promise.all([silent, silentStream])
  await until('three answers on their way', async () => (await metric(server, 'infer_leases', 'near')) === 3)

  server.kill('SIGTERM')
  const streamed = await stream.text()
  expect(streamed).toContain('token0 ')
  expect(streamed).not.toContain('[DONE]')
  const last = streamed.trimEnd().split('\n\n').at(-1)!
  expect(JSON.parse(last.replace(/^data: /, ''))).toMatchObject({
    error: { code: 'shutting_down', type: 'server_error', message: expect.any(String) as string },
  })
  for (const refusal of await refusals) {
    expect(refusal.status).toBe(503)
    expect(Number(refusal.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refusal.json()).toMatchObject({ error: { code: 'shutting_down' } })
  }
  expect(await server.ended).toEqual({ code: 0, signal: null })
  expect(home.processes()).toEqual([])
})

test('a second SIGTERM ends the server at once and leaves no process behind', async () => {
  await using home = openHome()
  home.configure({ models: models('http://127.0.0.1:9') })
  const server = home.serve()
  await server.ready
  const silent = server.fetch(chatPath, { body: chat('mode:silent') }).catch(() => 'cut')
  await until('an answer on its way', async () => (await metric(server, 'infer_leases', 'near')) === 1)
  server.kill('SIGTERM')
  await until('the server stopping', () => server.err().includes('"Stopping"'))
  const again = performance.now()
  server.kill('SIGTERM')
  expect(await server.ended).toEqual({ code: 143, signal: null })
  // Without the second signal the drain would take a minute.
  expect(performance.now() - again).toBeLessThan(20_000)
  expect(await silent).toBe('cut')
  await until('no process left', () => home.processes().length === 0, 2_000)
  const next = home.serve()
  await next.ready
})
