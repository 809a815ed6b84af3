import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect, createServer as createSocketServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { discardRest } from '../../../../server/http/body/unread-body.ts'
import { forward, forwardUpgrade } from '../../../../server/http/connection/forward.ts'
import { temporaryFolder } from '../../../cli/_infer.ts'

/** A server that forwards to one that answers the first bytes of each connection with this text. */
async function forwarding(answer: string) {
  const path = join(temporaryFolder(), 'next')
  const received: string[] = []
  const next = createSocketServer(socket => {
    socket.on('error', () => {})
    socket.once('data', bytes => {
      received.push(String(bytes))
      socket.end(answer)
    })
  })
  const server = createServer((req, res) =>
    forward(req, res, path, { failed: () => res.writeHead(503).end(), discardRest }),
  )
  server.on('upgrade', (req, socket, head) => forwardUpgrade(req, socket, head, path))
  next.listen(path)
  server.listen(0, '127.0.0.1')
  await Promise.all([once(next, 'listening'), once(server, 'listening')])
  onTestFinished(() => {
    next.close()
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, received }
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
    'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Infer-Client: http 9.9.9.9\r\n\r\n',
  )
  await once(socket, 'data')
  socket.destroy()
  expect(received[0]).not.toContain('9.9.9.9')
  expect(received[0]).toContain('x-infer-client: http 127.0.0.1')
})
