import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newLaunchKey } from '../../../gpu/launcher/launch-key.ts'
import { EngineConnection, type ExchangeListener } from '../../../gpu/requests/engine-connection.ts'
import { type HttpRequest, headerLines } from '../../../gpu/requests/http-request.ts'
import { temporaryFolder } from '../../cli/_infer.ts'

/** A server that gives each connection, with all that was received on it, to a function whenever something arrives. */
async function engine(answer: (socket: Socket, received: string) => void) {
  const sockets: Socket[] = []
  const server = createServer(socket => {
    sockets.push(socket)
    let received = ''
    socket
      .on('error', () => {})
      .on('data', bytes => {
        received += bytes.toString('latin1')
        answer(socket, received)
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const connection = new EngineConnection({
    endpoint: { origin: `http://127.0.0.1:${port}` },
    connectMs: 5_000,
    keepAliveMs: 60_000,
  })
  onTestFinished(() => {
    connection.destroy()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { connection, sockets, port }
}

const ok = (text: string, headers = '') => `HTTP/1.1 200 OK\r\n${headers}content-length: ${text.length}\r\n\r\n${text}`
const request = (more: Partial<HttpRequest> = {}): HttpRequest => ({
  method: 'POST',
  path: '/v1/x',
  headers: '',
  body: '{}',
  timeoutMs: 60_000,
  ...more,
})

interface Answer {
  status: number
  text: string
}

/** Sends a request. `listener` is what the connection knows it by; `begun` resolves with its first part. */
function send(connection: EngineConnection, more: Partial<HttpRequest> = {}) {
  let [status, text] = [0, '']
  const started = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<Answer>()
  const listener: ExchangeListener = {
    head: given => void (status = given),
    data(bytes) {
      text += bytes.toString('latin1')
      started.resolve()
    },
    ended: () => answered.resolve({ status, text }),
    failed: error => answered.reject(error),
  }
  answered.promise.catch(() => {})
  connection.send(request(more), listener)
  return { listener, begun: started.promise, answer: answered.promise, received: () => text.length }
}

test('requests follow one another on one connection, each as it was given', async () => {
  const { connection, sockets } = await engine((socket, received) => {
    if (received.endsWith('}') || received.endsWith('\r\n\r\n')) socket.write(ok(String(received.length)))
  })
  const headers = headerLines(['content-type', 'application/json', 'x-name', 'é'])
  expect(await send(connection, { headers, body: '{"a":1}' }).answer).toMatchObject({ status: 200 })
  const whole: string[] = []
  sockets[0]!.on('data', bytes => whole.push(bytes.toString('latin1')))
  await send(connection, { headers, body: '{"a":"é"}' }).answer
  await send(connection, { body: Buffer.from('{"b":2}') }).answer
  await send(connection, { method: 'GET', path: '/health?a=b', body: null }).answer
  const host = `host: 127.0.0.1:${sockets[0]!.localPort}\r\nconnection: keep-alive\r\n`
  expect(whole).toEqual([
    `POST /v1/x HTTP/1.1\r\n${host}${headers}content-length: 10\r\n\r\n{"a":"Ã©"}`,
    `POST /v1/x HTTP/1.1\r\n${host}content-length: 7\r\n\r\n{"b":2}`,
    `GET /health?a=b HTTP/1.1\r\n${host}\r\n`,
  ])
  expect(sockets).toHaveLength(1)
})

test('connections of which more begin at once than fit into the queue of a Unix socket wait', async () => {
  const socketPath = join(temporaryFolder(), 's')
  const server = createServer(socket => void socket.end(ok('a'))).listen({ path: socketPath, backlog: 2 })
  await once(server, 'listening')
  const endpoint = { origin: 'http://engine', socketPath }
  const connections = Array.from(
    { length: 20 },
    () => new EngineConnection({ endpoint, connectMs: 5_000, keepAliveMs: 60_000 }),
  )
  onTestFinished(() => {
    for (const connection of connections) connection.destroy()
    server.close()
  })
  const answers = await Promise.all(connections.map(connection => send(connection).answer))
  expect(answers.map(({ text }) => text)).toEqual(connections.map(() => 'a'))
})

describe('the next request gets a connection of its own after an answer', () => {
  test.each([
    ['that says so', ok('a', 'Connection: close\r\n')],
    ['of HTTP/1.0', ok('a').replace('1.1', '1.0')],
    ['with bytes after it', `${ok('a')}b`],
    ['of a server that closes at once', ok('a', 'keep-alive: timeout=1\r\n')],
  ])('%s', async (_what, text) => {
    const { connection, sockets } = await engine(socket => void socket.write(text))
    expect(await send(connection).answer).toEqual({ status: 200, text: 'a' })
    expect(await send(connection).answer).toEqual({ status: 200, text: 'a' })
    expect(sockets).toHaveLength(2)
  })

  test('that ends with the connection', async () => {
    const { connection, sockets } = await engine(socket => void socket.end('HTTP/1.1 200 OK\r\n\r\nab'))
    expect(await send(connection).answer).toEqual({ status: 200, text: 'ab' })
    expect(await send(connection).answer).toEqual({ status: 200, text: 'ab' })
    expect(sockets).toHaveLength(2)
  })

  test('that was there before the whole body was sent, which is read no further', async () => {
    const { connection, sockets } = await engine(socket => void socket.write(ok('no', '')))
    const body = new Readable({ read() {} })
    body.push('a')
    expect(await send(connection, { body, bodyBytes: 9 }).answer).toEqual({ status: 200, text: 'no' })
    expect(body.destroyed).toBe(true)
    expect((await send(connection).answer).text).toBe('no')
    expect(sockets).toHaveLength(2)
  })
})

test('bytes that belong to no request close the connection', async () => {
  const { connection, sockets } = await engine(socket => void socket.write(ok('a')))
  await send(connection).answer
  const closed = once(sockets[0]!, 'close')
  sockets[0]!.write(ok('b'))
  await closed
  expect(await send(connection).answer).toEqual({ status: 200, text: 'a' })
})

test('a connection without requests is closed after its time', async () => {
  const { port, sockets } = await engine(socket => void socket.write(ok('a')))
  const connection = new EngineConnection({
    endpoint: { origin: `http://127.0.0.1:${port}` },
    connectMs: 5_000,
    keepAliveMs: 20,
  })
  await send(connection).answer
  await once(sockets[0]!, 'close')
  expect((await send(connection).answer).text).toBe('a')
  connection.destroy()
})

describe('an aborted request', () => {
  test('ends its connection, and the next one gets nothing of its answer', async () => {
    const { connection, sockets } = await engine((socket, received) => {
      if (received.includes('/stream'))
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n')
      else socket.write(ok('next'))
    })
    const first = send(connection, { path: '/stream' })
    await first.begun
    const closed = once(sockets[0]!, 'close')
    connection.abort(first.listener)
    connection.abort(first.listener)
    expect((await send(connection).answer).text).toBe('next')
    await closed
    expect(sockets).toHaveLength(2)
  })

  test('inside of its answer: the rest of what was read is dropped', async () => {
    const chunks = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n'
    const { connection } = await engine((socket, received) =>
      socket.write(received.includes('/stream') ? chunks : ok('next')),
    )
    const parts: string[] = []
    const next = await new Promise<Answer>((resolve, reject) => {
      const listener: ExchangeListener = {
        head() {},
        data(bytes) {
          parts.push(bytes.toString())
          connection.abort(listener)
          send(connection).answer.then(resolve, reject)
        },
        ended: () => reject(new Error('ended')),
        failed: reject,
      }
      connection.send(request({ path: '/stream' }), listener)
    })
    expect(parts).toEqual(['abc'])
    expect(next.text).toBe('next')
  })

  test('before the connection is there leaves it to the next one', async () => {
    const { connection, sockets } = await engine((socket, received) => void socket.write(ok(received.split(' ')[1]!)))
    const { listener } = send(connection, { path: '/first' })
    connection.abort(listener)
    expect((await send(connection, { path: '/second' }).answer).text).toBe('/second')
    expect(sockets).toHaveLength(1)
  })
})

describe('a request fails', () => {
  test.each<[what: string, code: string, answer: (socket: Socket) => void]>([
    ['when the connection is closed before the answer', 'CLOSED', socket => socket.end()],
    [
      'when it is closed within the answer',
      'CLOSED',
      socket => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\na'),
    ],
    ['when it is reset', 'ECONNRESET', socket => socket.resetAndDestroy()],
    ['when the answer is not HTTP', 'MALFORMED', socket => socket.write('220 smtp.example.com\r\n')],
  ])('%s', async (_what, code, answer) => {
    const { connection, sockets } = await engine(answer)
    await expect(send(connection).answer).rejects.toMatchObject({ code })
    await expect(send(connection).answer).rejects.toMatchObject({ code })
    expect(sockets).toHaveLength(2)
  })

  test('when nobody listens', async () => {
    const { port } = await engine(() => {})
    const connection = new EngineConnection({
      endpoint: { origin: `http://127.0.0.1:${port}`, socketPath: '/nowhere/socket' },
      connectMs: 5_000,
      keepAliveMs: 1_000,
    })
    await expect(send(connection).answer).rejects.toMatchObject({ code: 'ENOENT', syscall: 'connect' })
  })

  test('when neither side sends anything for its time, but not while its reader is paused', async () => {
    const { connection } = await engine((socket, received) => {
      if (received.includes('/stream')) socket.write('HTTP/1.1 200 OK\r\n\r\na')
    })
    await expect(send(connection, { timeoutMs: 30 }).answer).rejects.toMatchObject({ code: 'TIMEOUT' })
    const paused = send(connection, { path: '/stream', timeoutMs: 30 })
    await paused.begun
    connection.pause(paused.listener)
    // A request whose time ends later than three times that of the paused one.
    const { connection: other } = await engine(() => {})
    await expect(send(other, { timeoutMs: 100 }).answer).rejects.toMatchObject({ code: 'TIMEOUT' })
    await expect(Promise.race([paused.answer, Promise.resolve('waits')])).resolves.toBe('waits')
    connection.resume(paused.listener)
    await expect(paused.answer).rejects.toMatchObject({ code: 'TIMEOUT' })
  })

  test.each([
    ['its path', () => ({ path: '/a b' })],
    ['a body that is shorter than announced', () => ({ body: Readable.from([Buffer.from('a')]), bodyBytes: 2 })],
    ['a body that is longer than announced', () => ({ body: [Buffer.from('abc')], bodyBytes: 2 })],
  ])('as one that cannot be sent, for %s', async (_what, more) => {
    const { connection } = await engine(() => {})
    await expect(send(connection, more()).answer).rejects.toMatchObject({ code: 'UNSENDABLE' })
  })

  test('with the error of its body', async () => {
    const { connection } = await engine(() => {})
    const body = Readable.from(
      (function* () {
        yield Buffer.from('a')
        throw new Error('The disk is gone.')
      })(),
    )
    await expect(send(connection, { body, bodyBytes: 5 }).answer).rejects.toThrow('The disk is gone.')
  })

  test('when the connection is destroyed, and after it', async () => {
    const { connection } = await engine(() => {})
    const { answer } = send(connection)
    connection.destroy()
    await expect(answer).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(send(connection).answer).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

test('an encrypted connection shows its key, and the next one takes up its session', async () => {
  const key = await newLaunchKey()
  const sockets: TLSSocket[] = []
  const reused: boolean[] = []
  const own = { key: key.key, cert: key.certificate, ca: key.certificate }
  const server = createTlsServer({ ...own, requestCert: true, rejectUnauthorized: true }, socket => {
    sockets.push(socket.on('error', () => {}))
    reused.push(socket.isSessionReused())
    socket.on('data', () => socket.write(ok('a'.repeat(100_000), 'connection: close\r\n')))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const [connection, stranger] = [key, await newLaunchKey()].map(
    tls => new EngineConnection({ endpoint: { origin, tls }, connectMs: 5_000, keepAliveMs: 60_000 }),
  )
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  for (let time = 0; time < 2; time++) expect((await send(connection!).answer).text).toHaveLength(100_000)
  expect(reused).toEqual([false, true])
  await expect(send(stranger!).answer).rejects.toThrow()
})

test.each(['a\r\nb: c', 'a\0', '→'])('a header with the value %j is refused', value => {
  expect(() => headerLines(['x', value])).toThrow(/header 'x' has a character/)
})

test('a paused request is not read, and goes on where it was', async () => {
  const size = 32 << 20
  const { connection, sockets } = await engine(socket => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`)
    socket.write(Buffer.alloc(size, 'a'))
  })
  const { listener, begun, answer, received } = send(connection)
  await begun
  connection.pause(listener)
  const before = received()
  // Another request takes at least one turn of the loop, in which a reading connection would receive.
  const { connection: other } = await engine(socket => void socket.write(ok('a')))
  for (let turn = 0; turn < 5; turn++) await send(other).answer
  expect(received()).toBeLessThanOrEqual(before + (64 << 10))
  expect(sockets[0]!.writableLength).toBeGreaterThan(0)
  connection.resume(listener)
  expect((await answer).text).toHaveLength(size)
})

test('a body in pieces waits for a server that reads slowly, and arrives whole', async () => {
  const piece = Buffer.alloc(1 << 20, 'a')
  const pieces = 24
  const held = Promise.withResolvers<Socket>()
  let bytes = 0
  const { connection } = await engine((socket, received) => {
    // The first part has the head.
    if (received.length <= 64 << 10) held.resolve(socket.pause())
  })
  let read = 0
  const body = Readable.from(
    (function* () {
      for (; read < pieces; read++) yield piece
    })(),
  )
  const { answer } = send(connection, { body, bodyBytes: pieces * piece.length })
  const socket = await held.promise
  const { connection: other } = await engine(socket => void socket.write(ok('a')))
  for (let turn = 0; turn < 20; turn++) await send(other).answer
  expect(read).toBeLessThan(pieces)
  socket.on('data', part => {
    bytes += part.length
    if (bytes >= (pieces - 1) * piece.length && read === pieces) socket.write(ok('got it'))
  })
  socket.resume()
  expect(await answer).toMatchObject({ text: 'got it' })
})
