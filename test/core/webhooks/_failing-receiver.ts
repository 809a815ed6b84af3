import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What one message has met with. */
interface Message {
  type: string
  object: string
  attempts: number
  accepted: number
}

/**
 * A receiver that fails half of all requests, in the ways in which receivers fail, and accepts every message at its
 * eighth attempt at the latest. `random` is 0 to 1.
 */
export async function openFailingReceiver(random: () => number = Math.random) {
  const messages = new Map<string, Message>()
  /** Events by object, in the order in which they were first accepted. */
  const accepted = new Map<string, string[]>()
  let requests = 0
  const waiting = new Set<() => void>()
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const { type, data } = JSON.parse(Buffer.concat(pieces).toString('utf8')) as {
        type: string
        data: { id: string }
      }
      const id = request.headers['webhook-id'] as string
      const message = messages.get(id) ?? { type, object: data.id, attempts: 0, accepted: 0 }
      messages.set(id, message)
      message.attempts += 1
      requests += 1
      for (const look of waiting) look()
      const luck = random()
      if (message.attempts < 8 && luck < 0.5) {
        if (luck < 0.1) return void response.destroy()
        return void response.writeHead(luck < 0.3 ? 500 : 429).end('not now')
      }
      message.accepted += 1
      if (message.accepted === 1) accepted.set(data.id, [...(accepted.get(data.id) ?? []), type])
      response.writeHead(204).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    messages,
    accepted,
    /** Resolves after so many further requests. */
    furtherRequests: (count: number): Promise<void> =>
      new Promise(resolve => {
        const until = requests + count
        const look = () => {
          if (requests < until) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
