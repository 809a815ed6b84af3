import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request that a webhook receiver got. */
export interface Received {
  path: string
  headers: IncomingHttpHeaders
  /** As it was sent. */
  text: string
  body: {
    id: string
    object: string
    type: string
    created_at: number
    timestamp: string
    data: Record<string, unknown>
  }
}

export interface Receiver extends AsyncDisposable {
  url: string
  port: number
  all: Received[]
  /** Resolves with the first request from now on, or so far unread, that the filter accepts. */
  next(filter?: (received: Received) => boolean): Promise<Received>
}

/** An HTTP server that records what webhooks send to it. `answer` may answer a request itself; otherwise it is 204. */
export async function openReceiver(
  answer: (received: Received, response: ServerResponse) => boolean | void = () => false,
): Promise<Receiver> {
  const all: Received[] = []
  const unread: Received[] = []
  const waiting: { filter: (received: Received) => boolean; resolve: (received: Received) => void }[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const text = Buffer.concat(pieces).toString('utf8')
      const { url = '/', headers } = request
      const body = JSON.parse(text || 'null') as Received['body']
      const received: Received = { path: url, headers, text, body }
      all.push(received)
      if (answer(received, response) !== true) response.writeHead(204).end()
      const at = waiting.findIndex(({ filter }) => filter(received))
      if (at < 0) unread.push(received)
      else waiting.splice(at, 1)[0]!.resolve(received)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    all,
    next(filter = () => true) {
      const at = unread.findIndex(filter)
      if (at >= 0) return Promise.resolve(unread.splice(at, 1)[0]!)
      return new Promise(resolve => waiting.push({ filter, resolve }))
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
