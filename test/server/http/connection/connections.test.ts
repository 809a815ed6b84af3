import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLog } from '../../../../core/log.ts'
import { Config } from '../../../../core/models/config.ts'
import { selfSignedFiles } from '../../../../server/http/connection/certificate.ts'
import { openServer, type Server } from '../../../../server/server.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'infer-connections-'))
const log = openLog('error')
const config = Config.parse({ listen: '127.0.0.1:0', limits: { headers_timeout: '300ms', keep_alive_timeout: '1h' } })
const open = (secure: boolean, more: Config = config) =>
  openServer({ config: more, log, https: secure ? { dataDir, files: undefined } : undefined })
// Generates the key pair that the other tests use.
beforeAll(async () => (await open(true)).drain(0))
afterAll(() => rmSync(dataDir, { recursive: true }))

async function connection(server: Server): Promise<Socket> {
  const { port, protocol } = new URL(server.url)
  const at = { host: '127.0.0.1', port: Number(port) }
  if (protocol === 'http:') {
    const socket = connect(at)
    await once(socket, 'connect')
    return socket
  }
  const socket = connectTls({ ...at, ca: readFileSync(selfSignedFiles(dataDir).cert), servername: 'localhost' })
  await once(socket, 'secureConnect')
  return socket
}

/** Everything received on a connection until the server closes it. */
async function all(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')))
  socket.on('error', () => {})
  await once(socket, 'close')
  return text
}

describe.each([
  ['http', false],
  ['https', true],
])('a connection over %s', (_, secure) => {
  test('that sends only a part of its headers is closed with 408', async () => {
    const server = await open(secure)
    const socket = await connection(server)
    const started = performance.now()
    socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n')
    expect(await all(socket)).toMatch(/^HTTP\/1\.1 408 .*"request_id":"req_/s)
    expect(performance.now() - started).toBeLessThan(3_000)
    await server.drain(0)
  })

  test('that sends nothing is closed', async () => {
    const server = await open(secure)
    expect(await all(await connection(server))).not.toContain('200')
    await server.drain(0)
  })

  test.each([
    ['headers of more than 16 KiB', `GET /livez HTTP/1.1\r\nhost: localhost\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    ['what is no HTTP', 'nonsense\r\n\r\n', 400],
  ])('that sends %s gets an error in the usual shape', async (_what, bytes, status) => {
    const server = await open(secure)
    const socket = await connection(server)
    socket.write(bytes)
    const text = await all(socket)
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(JSON.parse(text.split('\r\n\r\n')[1]!)).toMatchObject({
      error: { code: 'invalid_value', type: 'invalid_request_error', request_id: expect.stringMatching(/^req_/) },
    })
    await server.drain(0)
  })

  test('is closed after its thousandth answer', async () => {
    const server = await open(secure)
    const socket = await connection(server)
    let text = ''
    // One at a time: Node's parser gives up on a long pipeline inside TLS (HPE_PAUSED).
    const ask = () => socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    socket.on('data', (data: Buffer) => {
      text += data.toString('latin1')
      if (text.endsWith('\r\n\r\nok\n')) ask()
    })
    socket.on('error', () => {})
    ask()
    await once(socket, 'close')
    const answers = text.split(/(?=HTTP\/1\.1 200)/)
    expect(answers).toHaveLength(1_000)
    expect(answers.filter(answer => /^connection: close\r$/im.test(answer))).toEqual([answers.at(-1)])
    await server.drain(0)
  })

  test('that is idle learns that the server stops, and does not delay it', async () => {
    const idle = { headers_timeout: '10m', keep_alive_timeout: '1h' }
    const server = await open(secure, Config.parse({ listen: '127.0.0.1:0', limits: idle }))
    const [kept, silent] = [await connection(server), await connection(server)]
    kept.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await once(kept, 'data')
    const rest = Promise.all([all(kept), all(silent)])
    await server.drain(0)
    await rest
  })
})

describe('the TLS handshake', () => {
  test('that never completes ends the connection', async () => {
    const server = await open(true)
    const started = performance.now()
    expect(await all(connect(Number(new URL(server.url).port), '127.0.0.1'))).toBe('')
    expect(performance.now() - started).toBeLessThan(3_000)
    await server.drain(0)
  })

  test('that is under way does not delay a stop of the server', async () => {
    const server = await open(true, Config.parse({ listen: '127.0.0.1:0', limits: { headers_timeout: '10m' } }))
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    const closed = all(socket)
    await once(socket, 'connect')
    // The server has accepted it when a later connection is served.
    const later = await connection(server)
    later.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await once(later, 'data')
    await server.drain(0)
    await closed
  })

  test('with plain HTTP ends that connection only', async () => {
    const server = await open(true)
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    expect(await all(socket)).not.toContain('HTTP/1.1 200')
    const good = await connection(server)
    good.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    expect(String(await once(good, 'data'))).toMatch(/^HTTP\/1\.1 200/)
    good.destroy()
    await server.drain(0)
  })
})
