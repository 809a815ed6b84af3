import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

let app: TestApp
let engine: ScriptedEngine
let held: ServerResponse | undefined
beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    if (!seen.body.stream && JSON.stringify(seen.body).includes('hold')) held = response
    else well(seen, response)
  })
  app = await startApp({ models: [engine.model('far')], limits: { held_bodies: '8MiB' } })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const chat = (text: string, bytes: number): Buffer =>
  Buffer.from(JSON.stringify({ model: 'far', messages: [{ role: 'user', content: text + 'x'.repeat(bytes) }] }))

/** Opens a connection on which a request for a chat has been sent up to its body. */
async function begin(bytes: number, { token = app.secret, more = 'connection: close' } = {}): Promise<Socket> {
  const { port } = new URL(app.url)
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n` +
      `content-type: application/json\r\ncontent-length: ${bytes}\r\n${more}\r\n\r\n`,
  )
  return socket
}

/** The status of the answer that comes first. */
const firstStatus = async (socket: Socket): Promise<number> =>
  Number(/^HTTP\/1\.1 (\d+)/.exec(String(((await once(socket, 'data')) as [Buffer])[0]))?.[1])

/** The status for a client that reads the answer only after it has sent everything, or the socket error. */
async function send(body: Buffer, token = app.secret): Promise<number | string> {
  const socket = await begin(body.length, { token })
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.write(body, error => (error ? reject(error) : resolve()))
    })
    return await firstStatus(socket)
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code ?? String(thrown)
  } finally {
    socket.destroy()
  }
}

test('a body without memory for it gets its 503, and a wrong token its 401, however large', async () => {
  const first = send(chat('hold', 6 << 20))
  await engine.until(() => held !== undefined)
  for (let at = 0; at < 5; at++) expect(await send(chat('more', 24 << 20))).toBe(503)
  expect(await send(chat('more', 24 << 20), 'sk-wrong')).toBe(401)
  well({ path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'hold' }] } } as never, held!)
  expect(await first).toBe(200)
  expect(await send(chat('more', 2 << 20))).toBe(200)
})

test.each([
  ['closes', 'connection: close'],
  ['keeps', 'connection: keep-alive'],
  ['waits for 100 Continue on', 'connection: keep-alive\r\nexpect: 100-continue'],
])(
  'who announces a body above the limit and %s the connection is answered before the body is sent',
  async (_, more) => {
    const socket = await begin(40 << 20, { more })
    expect(await firstStatus(socket)).toBe(413)
    socket.destroy()
  },
  5_000,
)

test('100 Continue is sent for a body that is read, and the connection is kept', async () => {
  const body = chat('hello', 2 << 20)
  const socket = await begin(body.length, { more: 'expect: 100-continue' })
  expect(await firstStatus(socket)).toBe(100)
  socket.write(body)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 .*connection: keep-alive/is)
  socket.destroy()
})
