import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLog } from '../../../core/log.ts'
import { Config } from '../../../core/models/config.ts'
import { selfSignedFiles } from '../../../server/http/connection/certificate.ts'
import { openServer } from '../../../server/server.ts'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { frontPids } from './_fronts.ts'

const chat = (content: string, more: object = {}) => ({
  model: 'fake',
  messages: [{ role: 'user', content }],
  ...more,
})
const chatPath = '/std/v1/chat/completions'

/** Writes to a new connection, and resolves with everything received until it is closed. */
async function raw(url: string, ...pieces: string[]): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port) })
  let text = ''
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')))
  socket.on('error', () => {})
  for (const piece of pieces) socket.write(piece)
  await once(socket, 'close')
  return text
}

describe('an app with two gateway processes', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      gateway_processes: 2,
      models: [fakeModel('fake', [], { concurrency: 32 })],
      limits: { wrong_tokens_per_minute: 2, json_body: 2_000 },
    })
  })
  afterAll(async () => app[Symbol.asyncDispose]())

  test('accepts connections in them and not itself', async () => {
    expect(frontPids()).toHaveLength(2)
    expect((await app.fetch('/readyz', { token: null })).status).toBe(200)
  })

  test('answers a chat, and a stream event by event', async () => {
    const answer = await app.fetch(chatPath, { body: chat('Hello') })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
    expect(await answer.json()).toMatchObject({ object: 'chat.completion' })

    const controller = new AbortController()
    const streamed = await app.fetch(chatPath, {
      body: chat('mode:stream,tokens=1000,rate=20', { stream: true }),
      signal: controller.signal,
    })
    const reader = streamed.body!.getReader()
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toContain('data: {')
    // The engine's request ends with its client, not after its 50 seconds.
    controller.abort()
    await expect
      .poll(async () => {
        const { jobs } = (await (await app.fetch('/api/jobs?status=cancelled')).json()) as { jobs: unknown[] }
        return jobs.length
      })
      .toBe(1)
  })

  test('refuses as one process does', async () => {
    const { status, headers } = await app.fetch(chatPath, { body: chat('x'), token: null })
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect((await app.fetch('/api/workflows', { body: { name: 'x'.repeat(3_000) } })).status).toBe(413)
    expect((await app.fetch('/nowhere')).status).toBe(404)
    expect((await app.fetch('/api/me', { headers: { host: 'evil.example' } })).status).toBe(200)
    expect(await raw(app.url, 'GET /api/me HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 421 /,
    )
    expect(await raw(app.url, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 .*"request_id"/s)
    expect(await raw(app.url, 'GET /livez HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 .*ok\n$/s)
  })

  test('counts wrong tokens by the address of the client, whichever process it reaches', async () => {
    const statuses = []
    for (let sent = 0; sent < 6; sent++) statuses.push((await app.fetch('/api/me', { token: 'sk-infer-wrong' })).status)
    expect(statuses).toEqual([401, 401, 429, 429, 429, 429])
  })

  test('believes no client that claims to be a gateway process', async () => {
    const answer = await raw(
      app.url,
      'GET /metrics HTTP/1.1\r\nhost: localhost\r\nx-infer-front: guess 1.1 plain 10.0.0.1\r\nconnection: close\r\n\r\n',
    )
    // A connection from this machine reads them without a token.
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('asks for a body after it has checked the head', async () => {
    const head = (token: string, length: number) =>
      `POST /std/v1/embeddings HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n`
    const body = JSON.stringify({ model: 'fake', input: 'Hello' })
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(app.url).port) })
    socket.write(head(app.secret, body.length))
    const [first] = (await once(socket, 'data')) as [Buffer]
    expect(first.toString()).toMatch(/^HTTP\/1\.1 100 Continue/)
    socket.write(body)
    const [second] = (await once(socket, 'data')) as [Buffer]
    expect(second.toString()).toMatch(/^HTTP\/1\.1 200 /)
    socket.destroy()
    expect(await raw(app.url, head('none', 5))).toMatch(/^HTTP\/1\.1 4(01|29) /)
  })

  test('sends a body in chunks on, and a large one both ways', async () => {
    const bytes = Buffer.alloc(3 << 20, 'a')
    const form = new FormData()
    form.append('purpose', 'user_data')
    form.append('file', new Blob([bytes]), 'a.txt')
    const stored = await fetch(`${app.url}/std/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.secret}` },
      body: form,
    })
    const { id } = (await stored.json()) as { id: string }
    const content = await app.fetch(`/std/v1/files/${id}/content`)
    expect(Buffer.from(await content.arrayBuffer()).equals(bytes)).toBe(true)
  })

  test('replaces a gateway process that is killed, and loses only its connections', async () => {
    const streams: { socket: Socket; closed: boolean }[] = []
    const body = JSON.stringify(chat('mode:stream,tokens=100000,rate=50', { stream: true }))
    const begin = async () => {
      const socket = connect({ host: '127.0.0.1', port: Number(new URL(app.url).port) })
      const stream = { socket, closed: false }
      socket.on('error', () => {})
      socket.once('close', () => (stream.closed = true))
      socket.write(
        `POST ${chatPath} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${app.secret}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      )
      await once(socket, 'data')
      streams.push(stream)
    }
    // The kernel spreads connections by their ports.
    for (let begun = 0; begun < 12; begun++) await begin()
    const replaced = app.logged('A gateway process ended')
    const [victim] = frontPids()
    process.kill(victim!, 'SIGKILL')
    expect(await replaced).toMatchObject({ level: 'error', pid: victim })
    await expect.poll(() => streams.filter(({ closed }) => closed).length).toBeGreaterThan(0)
    expect(streams.filter(({ closed }) => !closed).length).toBeGreaterThan(0)
    await expect.poll(() => frontPids().length).toBe(2)
    app.errors.length = 0
    for (const { socket } of streams) socket.destroy()
    await expect.poll(async () => (await app.fetch(chatPath, { body: chat('Hello') })).status).toBe(200)
  })
})

test('gateway processes end with the server', async () => {
  const before = frontPids()
  const app = await startApp({ gateway_processes: 2, models: [fakeModel('fake')] })
  expect(frontPids()).toHaveLength(before.length + 2)
  await app[Symbol.asyncDispose]()
  expect(frontPids()).toEqual(before)
  await expect(fetch(`${app.url}/livez`)).rejects.toThrow()
})

test('an address that another server has is refused, although both could share it', async () => {
  const config = (listen: string) => Config.parse({ listen, gateway_processes: 2 })
  const log = openLog('error')
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-fronts-'))
  const server = await openServer({ config: config('127.0.0.1:0'), log, gateway: { dataDir } })
  await server.takenOver()
  const same = config(new URL(server.url).host)
  await expect(openServer({ config: same, log, gateway: { dataDir } })).rejects.toThrow(/^Cannot listen on /)
  await server.drain(0)
  rmSync(dataDir, { recursive: true })
})

test('gateway processes decrypt TLS, and use a new certificate for new connections', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-fronts-'))
  const config = Config.parse({ listen: '127.0.0.1:0', gateway_processes: 2 })
  const log = openLog('error')
  const server = await openServer({ config, log, gateway: { dataDir }, https: { dataDir, files: undefined } })
  await server.takenOver()
  const get = async () => {
    const socket = connectTls({
      host: '127.0.0.1',
      port: Number(new URL(server.url).port),
      ca: readFileSync(selfSignedFiles(dataDir).cert),
      servername: 'localhost',
    })
    socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    return answer.toString()
  }
  expect(await get()).toMatch(/^HTTP\/1\.1 200 /)
  server.reloadCertificate()
  expect(await get()).toMatch(/^HTTP\/1\.1 200 /)
  await server.drain(0)
  rmSync(dataDir, { recursive: true })
})
