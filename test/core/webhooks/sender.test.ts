import { once } from 'node:events'
import { type AddressInfo, createServer as createSocketServer, type Server as SocketServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Answer, Resolve } from '../../../core/media/checked-url.ts'
import { networkOf } from '../../../core/network-address.ts'
import { openSender, type SenderOptions } from '../../../core/webhooks/sender.ts'
import { openReceiver, type Receiver } from '../../_receiver.ts'

/** Counts connections to 127.0.0.2: there must be none. The receiver on 127.0.0.1 has the same port. */
let canary: SocketServer
let connections = 0
let receiver: Receiver
let canaryPort: number
const opened: { close(): Promise<void> }[] = []

beforeAll(async () => {
  receiver = await openReceiver(({ path }, response) => {
    if (path === '/redirect') response.writeHead(302, { location: `http://127.0.0.2:${canaryPort}/` }).end()
    else if (path === '/large') response.end('x'.repeat(100_000))
    else if (path === '/slow') return true
    else if (path === '/cut') response.destroy()
    else return false
    return true
  })
  canary = createSocketServer(socket => {
    connections++
    socket.destroy()
  }).listen(0, '127.0.0.2')
  await once(canary, 'listening')
  canaryPort = (canary.address() as AddressInfo).port
})
afterAll(async () => {
  for (const one of opened) await one.close()
  await receiver[Symbol.asyncDispose]()
  canary.close()
})

const v4 = (...addresses: string[]): Answer[] => addresses.map(address => ({ address, family: 4 }))
/** Any port is allowed, so that only the address can be the reason. */
function sender(options: Partial<SenderOptions> & { allowed?: string[] } = {}) {
  const { allowed = ['127.0.0.1'], ...more } = options
  const rules = { allowed: allowed.map(networkOf), hosts: undefined, ports: [canaryPort, receiver.port, 80, 443] }
  const made = openSender({ rules, timeoutMs: 3_000, connections: 2, ...more })
  opened.push(made)
  return made
}
const send = (url: string, options?: Parameters<typeof sender>[0]) =>
  sender(options).send({ url, headers: { 'webhook-id': 'msg_1' }, body: '{"a":"ä"}' }, new AbortController().signal)
const unreachable = expect.objectContaining({
  statusCode: null,
  why: 'The URL could not be reached. It must be http or https, at a public address, on port 80 or 443.',
}) as object

test('a message is a POST with its headers; the beginning of the answer is kept', async () => {
  const reply = await send(`${receiver.url}/a?b=c`)
  expect(reply).toMatchObject({ statusCode: 204, body: '' })
  const received = await receiver.next()
  expect([received.path, received.text, received.headers['webhook-id'], received.headers['content-type']]).toEqual([
    '/a?b=c',
    '{"a":"ä"}',
    'msg_1',
    'application/json',
  ])
  expect(Object.keys(received.headers).filter(name => /cookie|authorization|origin|referer/.test(name))).toEqual([])
  expect(await send(`${receiver.url}/large`)).toMatchObject({ statusCode: 200, body: 'x'.repeat(4_096) })
})

describe('an address that is not allowed is never connected to', () => {
  test.each(['127.0.0.2', '127.2', '2130706434', '0x7f.0.0.2', '0177.0.0.2', '[::ffff:7f00:2]'])(
    'written as %s',
    async host => expect(await send(`http://${host}:${canaryPort}/`)).toEqual(unreachable),
  )

  test.each<[string, Resolve]>([
    ['a name that resolves to it', (_, done) => done(null, v4('127.0.0.2'))],
    ['a name that also resolves to it', (_, done) => done(null, v4('127.0.0.1', '127.0.0.2'))],
    ['a name without an address', (_, done) => done(null, [])],
    ['a name that does not exist', (_, done) => done(new Error('ENOTFOUND'), [])],
  ])('%s', async (_, resolve) =>
    expect(await send(`http://hooks.example:${canaryPort}/`, { resolve })).toEqual(unreachable),
  )

  test('a name that changes between two messages: each connection is checked', async () => {
    let answers = v4('127.0.0.1')
    const rebinding = sender({ resolve: (_, done) => done(null, answers) })
    const message = { headers: {}, body: '{}' }
    const { signal } = new AbortController()
    const url = (port: number) => `http://rebinding.example:${port}/`
    expect(await rebinding.send({ ...message, url: url(receiver.port) }, signal)).toMatchObject({ statusCode: 204 })
    answers = v4('127.0.0.2')
    expect(await rebinding.send({ ...message, url: url(canaryPort) }, signal)).toEqual(unreachable)
  })

  test('a redirect is not followed', async () =>
    expect(await send(`${receiver.url}/redirect`)).toMatchObject({ statusCode: 302 }))

  test('the canary was never reached', () => expect(connections).toBe(0))
})

test('an answer that does not come in time', async () =>
  expect(await send(`${receiver.url}/slow`, { timeoutMs: 60 })).toMatchObject({
    statusCode: null,
    why: 'The URL did not answer within 0.06 s.',
  }))

test('a connection that ends without an answer', async () =>
  expect(await send(`${receiver.url}/cut`)).toMatchObject({
    statusCode: null,
    why: expect.stringContaining('The connection ended without an answer') as string,
  }))

test('the server stops', async () => {
  const stopped = new AbortController()
  const sending = sender().send({ url: `${receiver.url}/slow`, headers: {}, body: '{}' }, stopped.signal)
  await receiver.next(({ path }) => path === '/slow').then(() => receiver.next(({ path }) => path === '/slow'))
  stopped.abort()
  expect(await sending).toMatchObject({ statusCode: null })
})
