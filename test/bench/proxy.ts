import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { H3, type H3Event, toNodeHandler } from 'h3'
import { Pool } from 'undici'

/**
 * The baseline of the gateway benchmark: a minimal h3 route that relays a request with undici. It checks no token and
 * no limit, records nothing, and relays body and answer unchanged.
 * Usage: proxy.ts <engine port> [own port]. Prints its own port, on which further proxies may listen too.
 */
const [enginePort, port = '0'] = process.argv.slice(2)
const pool = new Pool(`http://127.0.0.1:${enginePort}`, { connections: 1024, pipelining: 1 })
const handled = Symbol.for('h3.handled')

const app = new H3()
app.on('POST', '/v1/**', (event: H3Event) => {
  const { req, res } = event.runtime!.node as { req: IncomingMessage; res: ServerResponse }
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
      pool
        .stream(
          { method: 'POST', path: req.url!, headers: { 'content-type': 'application/json' }, body },
          ({ statusCode, headers }) => {
            res.writeHead(statusCode, {
              'content-type': String(headers['content-type']),
              ...(headers['content-length'] ? { 'content-length': String(headers['content-length']) } : {}),
            })
            return res
          },
        )
        .then(() => resolve(handled))
        .catch(() => resolve(handled))
    })
  })
})

const server = createServer({ noDelay: true }, toNodeHandler(app))
const listening = () => console.log((server.address() as { port: number }).port)
server.listen({ port: Number(port), host: '127.0.0.1', reusePort: true }, listening)
