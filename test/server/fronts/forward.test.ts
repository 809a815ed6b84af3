import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, createServer as createSocketServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { openForwarder } from '../../../server/fronts/forward.ts'
import { temporaryFolder } from '../../cli/_infer.ts'

/** A server that passes requests on to one that answers the first bytes of each connection with this text. */
async function forwarding(answer: string, options: { isLast?: boolean } = {}) {
  const socketPath = join(temporaryFolder(), 'next')
  const received: string[] = []
  const next = createSocketServer(socket => {
    socket.on('error', () => {})
    socket.once('data', bytes => {
      received.push(String(bytes))
      socket.end(answer)
    })
  })
  const forwarder = openForwarder({ socketPath, secret: 'secret' }, options)
  const server = createServer(forwarder.forward)
  server.on('upgrade', forwarder.upgrade)
  next.listen(socketPath)
  server.listen(0, '127.0.0.1')
  await Promise.all([once(next, 'listening'), once(server, 'listening')])
  onTestFinished(() => {
    forwarder.close()
    next.close()
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, received, next }
}

test('a refusal that comes before the end of the body reaches the client', async () => {
  const { port } = await forwarding('HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno')
  const sent = request({ port, method: 'POST', host: '127.0.0.1' })
  const failures: Error[] = []
  sent.on('error', failure => failures.push(failure))
  sent.write(Buffer.alloc(4 << 20))
  const [answer] = await once(sent, 'response')
  expect(answer.statusCode).toBe(413)
  expect(await text(answer)).toBe('no')
  // Its connection is not reset while it still sends.
  sent.end(Buffer.alloc(4 << 20))
  await once(sent, 'close')
  expect(failures).toEqual([])
})

test('a client cannot name its own address in a request to upgrade', async () => {
  const { port, received } = await forwarding('HTTP/1.1 101 Switching Protocols\r\n\r\n')
  const socket = connect(port, '127.0.0.1')
  socket.write(
    'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Infer-Front: secret 1.1 plain 9.9.9.9\r\n\r\n',
  )
  await once(socket, 'data')
  socket.destroy()
  expect(received[0]).not.toContain('9.9.9.9')
  expect(received[0]).toContain('x-infer-front: secret 1.1 plain 127.0.0.1')
})

test.each([
  ['closes', true, 'close'],
  ['keeps', false, 'keep-alive'],
] as const)(
  'an answer %s the connection of its client, whatever the client waits for',
  async (_how, isLast, expected) => {
    const { port } = await forwarding('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok', { isLast })
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const sent = request({ port, host: '127.0.0.1', agent })
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    expect(await text(answer)).toBe('ok')
    expect(answer.headers.connection).toBe(expected)
  },
)

test('where no server answers, the request is refused with the time to try again', async () => {
  const { port, next } = await forwarding('', { isLast: true })
  next.close()
  const answer = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: 'a' })
  expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('connection')]).toEqual([
    503,
    '5',
    'close',
  ])
})

test('requests of which more begin at once than fit into the queue of the socket are all answered', async () => {
  const socketPath = join(temporaryFolder(), 'next')
  const next = createServer((_, res) => res.end('ok')).listen({ path: socketPath, backlog: 2 })
  const forwarder = openForwarder({ socketPath, secret: 'secret' })
  const begin: (() => void)[] = []
  const count = 40
  const server = createServer((req, res) => {
    begin.push(() => forwarder.forward(req, res))
    // In one turn of the event loop, in which nothing is accepted.
    if (begin.length === count) for (const one of begin) one()
  }).listen(0, '127.0.0.1')
  await Promise.all([once(next, 'listening'), once(server, 'listening')])
  onTestFinished(() => {
    forwarder.close()
    for (const one of [next, server]) one.closeAllConnections()
    for (const one of [next, server]) one.close()
  })
  const { port } = server.address() as AddressInfo
  const answers = await Promise.all(Array.from({ length: count }, () => fetch(`http://127.0.0.1:${port}`)))
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: count }, () => 200))
})
