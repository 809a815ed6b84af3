import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Lease } from '../../../../core/models/fleet.ts'
import { Model } from '../../../../core/models/model.ts'
import { fleetOf } from '../../../gpu/_fleet.ts'

/** An HTTP answer: its status, content type and body; `cut` closes the connection after the body. */
export interface Answer {
  status?: number
  type?: string
  body: string | Uint8Array
  cut?: boolean
}

/** A request that the engine received. */
export interface Sent {
  line: string
  type: string | undefined
  body: Buffer
}

/**
 * A slot of an engine on a real socket, which gives this answer to every request, or one by its method and path; and the
 * requests so far.
 */
export async function leaseOf(answer: Answer | ((line: string) => Answer)): Promise<{ lease: Lease; sent: Sent[] }> {
  const sent: Sent[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const line = `${request.method} ${request.url}`
      sent.push({ line, type: request.headers['content-type'], body: Buffer.concat(chunks) })
      const { status = 200, type, body, cut } = typeof answer === 'function' ? answer(line) : answer
      response.writeHead(status, type === undefined ? {} : { 'content-type': type })
      if (cut) response.write(body, () => response.destroy())
      else response.end(body)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const model = Model.parse({ id: 'there', engine: 'remote', url: `http://127.0.0.1:${port}` })
  const { fleet } = await fleetOf([model])
  const lease = await fleet.lease(model, { waitMs: 30_000 })
  onTestFinished(() => lease.release())
  return { lease, sent }
}
