import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { Model } from '../../../core/models/model.ts'
import { openEnergy } from '../../../gpu/devices/energy.ts'
import { freePort } from '../../../gpu/launcher/address.ts'
import { type ConnectionOptions, EngineConnections } from '../../../gpu/requests/connections.ts'
import { EngineLease } from '../../../gpu/requests/lease.ts'
import { openListener } from '../../../server/http/connection/listen.ts'
import { chat, fake, fleetOf, send, statsOf } from '../_fleet.ts'
import { until } from '../launcher/_launch.ts'

const one = async (flags: string[] = [], of: object = {}) => {
  const model = fake('one', flags, of)
  return { ...(await fleetOf([model])), model }
}

test('a whole answer is passed on unchanged', async () => {
  const { fleet, model } = await one()
  const answer = await chat(fleet, model)
  expect(answer).toMatchObject({ contentType: 'application/json', failure: undefined })
  expect(JSON.parse(answer.text)).toMatchObject({
    object: 'chat.completion',
    choices: [{ message: { content: 'Hello from the fake engine.' } }],
    usage: { completion_tokens: 5 },
  })
})

test('a stream arrives chunk by chunk', async () => {
  const { fleet, model } = await one()
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  const answer = await send(lease, 'mode:stream,tokens=20,rate=200', { stream: true }).answer
  expect(answer.contentType).toBe('text/event-stream')
  expect(answer.chunks).toBeGreaterThan(5)
  expect(answer.text.match(/token\d+/g)).toHaveLength(20)
  expect(answer.text.endsWith('data: [DONE]\n\n')).toBe(true)
})

test.each<[what: string, body: (text: string) => string | Uint8Array, length: number]>([
  ['a text', text => text, 10],
  ['bytes', text => Buffer.from(text), 10],
  ['many bytes, which are sent in pieces', text => Buffer.from(text), 3 << 20],
])('members are sent at the start of the object: %s', async (_, made, length) => {
  const bodies: Buffer[] = []
  const server = createHttpServer((request, response) => {
    request.on('data', (chunk: Buffer) => void bodies.push(chunk))
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const model = Model.parse({ id: 'there', engine: 'remote', url: `http://127.0.0.1:${port}/v1` })
  const { fleet } = await fleetOf([model])
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  const body = JSON.stringify({ model: 'm', text: 'é'.repeat(length) })
  const sent = { body: made(body), members: '"id_slot":1,"name":"ü"' }
  expect(await send(lease, '', sent).answer).toMatchObject({ failure: undefined, text: '{}' })
  const received = Buffer.concat(bodies).toString('utf8')
  expect(received === `{"id_slot":1,"name":"ü",${body.slice(1)}`).toBe(true)
})

test('several consecutive requests in one lease use one connection', async () => {
  const { fleet, model } = await one([], { concurrency: 1 })
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  for (let at = 0; at < 5; at++) expect((await send(lease, 'Hello').answer).failure).toBeUndefined()
  const { text } = await send(lease, '', { path: '/stats' }).answer
  // One for the requests, the others were health checks.
  expect(JSON.parse(text)).toMatchObject({ requests: 5, finished: 5, aborted: 0 })
})

describe('an error at the engine is reported once', () => {
  const cases: [what: string, text: string, stream: boolean, code: string, message: RegExp][] = [
    ['an error status', 'mode:status,code=400,text=bad-value', false, 'invalid_value', /bad-value/],
    ['an error status for a stream', 'mode:status,code=422,text=bad-value', true, 'invalid_value', /bad-value/],
    ['an internal error', 'mode:status,code=500,text=ouch', false, 'worker_error', /answered 500\. Trying/],
    ['a redirect', 'mode:status,code=302', false, 'worker_error', /302/],
    ['a broken connection', 'mode:break', false, 'worker_error', /closed the connection without an answer/],
    ['an answer that is too long', 'mode:long-line,mb=3', false, 'worker_error', /more than 1048576 bytes/],
    [
      'a crash',
      'mode:crash',
      false,
      'worker_error',
      /^The engine of 'one' has ended\. Engine exited \(3\): out of memory\.$/,
    ],
    ['a crash in mid-stream', 'mode:crash,after=3,rate=100', true, 'worker_error', /Engine exited \(3\)/],
    ['a segmentation fault', 'mode:segfault', true, 'worker_error', /Engine exited \(SIGSEGV\)/],
  ]
  test.each(cases)('%s', async (_what, text, stream, code, message) => {
    const { fleet, model } = await one()
    using lease = await fleet.lease(model, { waitMs: 30_000 })
    const { failure } = await send(lease, text, { stream }).answer
    expect(failure).toMatchObject({ code, message: expect.stringMatching(message) })
  })
})

test('bytes are passed on uninterpreted: garbage, incomplete answers and long streams', async () => {
  const { fleet, model } = await one()
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  expect(await send(lease, 'mode:half-json').answer).toMatchObject({
    failure: undefined,
    text: '{"choices":[{"index":0,"mess',
  })
  expect((await send(lease, 'mode:garbage').answer).failure).toBeUndefined()
  expect(await send(lease, 'mode:wrong-type').answer).toMatchObject({ contentType: 'text/html' })
  const long = await send(lease, 'mode:long-line,mb=20', { stream: true }).answer
  expect(long.text.length).toBeGreaterThan(20 << 20)
})

test('an abort ends the request at the engine', async () => {
  const { fleet, model } = await one()
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  const { exchange, begun, answer } = send(lease, 'mode:stream,tokens=100000,rate=100', { stream: true })
  await begun
  exchange.abort()
  exchange.abort()
  await until(async () => (await statsOf(fleet, model)).aborted === 1)
  const silent = await Promise.race([answer.then(() => 'told'), Promise.resolve('silent')])
  expect(silent).toBe('silent')
})

test('an abort before the first byte reaches the engine too, and the slot stays usable', async () => {
  const { fleet, model } = await one([], { concurrency: 1 })
  {
    using lease = await fleet.lease(model, { waitMs: 30_000 })
    const { exchange } = send(lease, 'mode:silent')
    await until(async () => fleet.snapshot().residents[0]!.leases === 1)
    await new Promise(next => setImmediate(next))
    exchange.abort()
  }
  expect((await chat(fleet, model)).failure).toBeUndefined()
})

test('an abort before anything was sent reports nothing', async () => {
  const { fleet, model } = await one()
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  send(lease, 'Hello').exchange.abort()
  expect((await send(lease, 'Hello').answer).failure).toBeUndefined()
})

test('releasing a lease ends its running requests, and a slot is released once', async () => {
  const { fleet, model } = await one([], { concurrency: 1 })
  const lease = await fleet.lease(model, { waitMs: 30_000 })
  const { begun } = send(lease, 'mode:stream,tokens=100000,rate=100', { stream: true })
  await begun
  lease.release()
  lease.release()
  await until(async () => (await statsOf(fleet, model)).aborted === 1)
  expect(fleet.snapshot().residents[0]).toMatchObject({ leases: 0 })
  const late = send(lease, 'Hello')
  expect(await Promise.race([late.answer.then(() => 'told'), Promise.resolve('silent')])).toBe('silent')
})

test('a paused reader gets nothing, and the rest after it resumes', async () => {
  const { fleet, model } = await one()
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  let bytes = 0
  const paused = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const exchange = lease.open(
    {
      path: '/v1/chat/completions',
      stream: true,
      maxBytes: 1,
      body: JSON.stringify({ messages: [{ role: 'user', content: 'mode:long-line,mb=30' }], stream: true }),
    },
    {
      accepted() {},
      chunk(piece) {
        const before = bytes
        bytes += piece.length
        if (before < 1 << 20 && bytes >= 1 << 20) {
          exchange.pause()
          paused.resolve()
        }
      },
      finished: () => ended.resolve(),
      failed: failure => ended.reject(failure),
    },
  )
  await paused.promise
  const atPause = bytes
  // Meanwhile another request uses another connection; in that time nothing may arrive here.
  for (let at = 0; at < 20; at++) await chat(fleet, model)
  expect(bytes).toBe(atPause)
  exchange.resume()
  await ended.promise
  expect(bytes).toBeGreaterThan(30 << 20)
})

// Processes that send to the same engine report their progress once a second.
test.each([
  [600, 505, true],
  [2_000, 1_505, true],
  [300_000, 299_505, true],
  [600, 250, false],
  [2_000, 1_000, false],
  [300_000, 250_000, false],
])('of %s ms without progress, %s ms count as stuck: %s', (noProgressMs, silentMs, isStuck) => {
  let stuck = false
  const endpoint = { origin: 'http://engine' }
  const options = { endpoint, noProgressMs, stuck: () => void (stuck = true) } as ConnectionOptions
  const connections = new EngineConnections(options)
  connections.lastProgressAt = performance.now() - silentMs
  connections.stalled()
  expect(stuck).toBe(isStuck)
})

describe('a request that finds nobody at the address of its engine', () => {
  /** A lease on an engine of which `unreached` is told, and that is not there. */
  let connections: EngineConnections
  async function leased(unreached: () => void) {
    connections = new EngineConnections({
      endpoint: { origin: `http://127.0.0.1:${await freePort()}` },
      engineId: 'e',
      modelId: 'm',
      headers: [],
      noProgressMs: 10_000,
      keepAliveMs: 4_000,
      isOwnProcess: true,
      sharesFolders: true,
      healthPath: null,
      unreached,
    } as Partial<ConnectionOptions> as ConnectionOptions)
    onTestFinished(() => connections.close())
    const engine = { engineId: 'e', devices: [], slots: 1, serves: { model: { id: 'm' } } }
    return new EngineLease(engine, connections, openEnergy(), {
      onReleased() {},
      probe: false,
      waitedMs: 0,
      loadedMs: 0,
    })
  }
  const lost = () => new Failure('worker_error', 'It cannot be reached.')

  test('has its launcher look, and is not charged where the engine cannot be reached at all', async () => {
    using lease = await leased(() => queueMicrotask(() => connections.interrupt(lost)))
    expect((await send(lease, 'Hello').answer).failure).toMatchObject({ code: 'worker_error', unsent: true })
    expect(lease.othersAtEnd).toBeUndefined()
  })

  test('is not charged, and waits for nobody, where that was known before', async () => {
    using lease = await leased(() => {})
    connections.interrupt(lost)
    const { failure } = await send(lease, 'Hello').answer
    expect(failure).toMatchObject({ message: lost().message, unsent: true })
  })

  test('is charged if nobody says that it cannot', async () => {
    let looks = 0
    using lease = await leased(() => void looks++)
    expect((await send(lease, 'Hello').answer).failure).toMatchObject({
      message: expect.stringContaining('cannot be reached') as string,
      unsent: false,
    })
    expect(looks).toBe(2)
  })
})

test('an engine that answers no request is stopped, and the next request gets a new one', async () => {
  const { fleet, model, log } = await one([], { no_progress: '600ms' })
  {
    using lease = await fleet.lease(model, { waitMs: 30_000 })
    const { failure } = await send(lease, 'mode:freeze').answer
    expect(failure).toMatchObject({
      code: 'timeout',
      message: expect.stringMatching(/made no progress for 0\.6 s/),
    })
  }
  expect((await chat(fleet, model)).failure).toBeUndefined()
  expect(log.lines.some(line => line.startsWith('warn An engine makes no progress and is killed'))).toBe(true)
  expect(fleet.snapshot().models.one).toMatchObject({ engineStarts: 2, engineFailures: 1 })
})

test('one silent request does not stop an engine that serves others', async () => {
  const { fleet, model } = await one([], { no_progress: '1500ms' })
  using quiet = await fleet.lease(model, { waitMs: 30_000 })
  const stuck = send(quiet, 'mode:silent').answer
  const state = { over: false }
  void stuck.then(() => (state.over = true))
  while (!state.over) expect((await chat(fleet, model)).failure).toBeUndefined()
  expect((await stuck).failure?.message).toMatch(/no progress/)
  expect(fleet.snapshot().models.one).toMatchObject({ engineStarts: 1, engineFailures: 0 })
})

test('a paused reader does not count as an engine without progress', async () => {
  const { fleet, model } = await one([], { no_progress: '500ms' })
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  const { exchange, begun, answer } = send(lease, 'mode:long-line,mb=8', { stream: true })
  await begun
  exchange.pause()
  using other = await fleet.lease(model, { waitMs: 30_000 })
  await send(other, 'mode:slow,ms=400').answer
  await send(other, 'mode:slow,ms=400').answer
  await send(other, 'mode:slow,ms=400').answer
  exchange.resume()
  expect((await answer).failure).toBeUndefined()
})

test('all requests of an engine that exits fail at once with the reason of the exit', async () => {
  const { fleet, model } = await one([], { concurrency: 4 })
  const leases = await Promise.all(Array.from({ length: 4 }, () => fleet.lease(model, { waitMs: 30_000 })))
  const silent = leases.slice(0, 3).map(lease => send(lease, 'mode:silent').answer)
  const dying = send(leases[3]!, 'mode:crash').answer
  const failures = (await Promise.all([...silent, dying])).map(answer => answer.failure?.message)
  expect(failures).toEqual(Array(4).fill("The engine of 'one' has ended. Engine exited (3): out of memory."))
  for (const lease of leases) lease.release()
})

test('a listener that throws ends only its own request', async () => {
  const { fleet, model, log } = await one()
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  const thrown = new Promise<void>(resolve => {
    lease.open(
      { path: '/v1/chat/completions', body: '{"messages":[]}', stream: false, maxBytes: 1 << 20 },
      {
        accepted() {},
        chunk() {
          resolve()
          throw new Error('our own fault')
        },
        finished() {},
        failed() {},
      },
    )
  })
  await thrown
  expect((await send(lease, 'Hello').answer).failure).toBeUndefined()
  expect(log.lines.filter(line => line.startsWith('error A listener'))).toHaveLength(1)
})

/** A remote server that sends these bytes to every client. */
async function elsewhere(bytes: string | null): Promise<Model> {
  const server = createServer(socket => {
    socket.on('error', () => {})
    if (bytes === null) socket.destroy()
    else socket.end(bytes)
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  return Model.parse({ id: 'there', engine: 'remote', url: `http://127.0.0.1:${port}/v1` })
}

describe('a remote server', () => {
  const cases: [what: string, bytes: string | null, message: RegExp][] = [
    ['that closes the connection', null, /closed the connection without an answer/],
    ['that uses another protocol', 'SSH-2.0-OpenSSH_9.2\r\n', /did not answer in HTTP/],
    ['that closes it in mid-answer', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf', /broke off its answer/],
  ]
  test.each(cases)('%s', async (_what, bytes, message) => {
    const model = await elsewhere(bytes)
    const { fleet } = await fleetOf([model])
    expect((await chat(fleet, model)).failure).toMatchObject({
      code: 'worker_error',
      message: expect.stringMatching(message),
    })
  })

  test('that does not listen', async () => {
    const model = Model.parse({ id: 'there', engine: 'remote', url: 'http://127.0.0.1:9' })
    const { fleet } = await fleetOf([model])
    expect((await chat(fleet, model)).failure?.message).toMatch(/cannot be reached/)
  })

  test('whose certificate no known authority has signed: the failure says what to do', async () => {
    const https = { names: ['127.0.0.1'], validDays: 9 }
    const { server } = await openListener({ handler: () => {}, at: '127.0.0.1:0', https, configure() {} })
    onTestFinished(() => void server.close())
    const { port } = server.address() as { port: number }
    const model = Model.parse({ id: 'there', engine: 'remote', url: `https://127.0.0.1:${port}/v1` })
    const checked = { ...model, id: 'checked', health_path: '/up' }
    const { fleet } = await fleetOf([model, checked])
    expect((await chat(fleet, model)).failure).toMatchObject({
      code: 'worker_error',
      retryable: false,
      message: expect.stringMatching(/^The certificate of the engine of 'there' is signed by .* NODE_USE_SYSTEM_CA=1/),
    })
    await expect(fleet.lease(checked, { waitMs: 30_000 })).rejects.toMatchObject({
      message: expect.stringContaining('The certificate of the engine is signed by'),
    })
  })

  test('that is unhealthy gets no request', async () => {
    const model = await elsewhere('HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    const checked = { ...model, health_path: '/up', load_timeout: 300 }
    const { fleet } = await fleetOf([checked])
    await expect(fleet.lease(checked, { waitMs: 30_000 })).rejects.toMatchObject({
      code: 'no_capacity',
      message: expect.stringMatching(/answered 500 at \/up/),
    })
  })

  test('that is healthy gets requests with its key, without a local process', async () => {
    const ok = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}'
    const model = await elsewhere(ok)
    const { fleet } = await fleetOf([model])
    expect((await chat(fleet, model)).text).toBe('{}')
    expect(fleet.snapshot().residents).toMatchObject([{ pid: null, devices: [], state: 'ready' }])
  })
})
