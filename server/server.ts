import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { H3, toNodeHandler } from 'h3'
import { openWrongTokenLimiter } from '../core/accounts/limiter.ts'
import type { Config } from '../core/config.ts'
import { Failure } from '../core/failure.ts'
import { newId } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
import { dispatch } from './dispatch.ts'
import { refuse } from './errors.ts'
import { hostAllowed, hostName } from './host.ts'
import type { Route } from './route.ts'
import { routes } from './routes.ts'
import type { Services } from './services.ts'

type State = 'starting' | 'ready' | 'draining'

/** h3 is told by this value that the response was written on the Node side. */
const handled = Symbol.for('h3.handled')

/** A warm-up must not be mistaken for readiness: until `serve`, everything but /livez is answered with 503. */
const starting = () =>
  new Failure('model_warming_up', 'The server is starting: it recovers its store first. Try again in a moment.', {
    retryAfterMs: 1_000,
  })
const stopping = () =>
  new Failure('shutting_down', 'The server is stopping and takes no new requests. Send it again in a moment.', {
    retryAfterMs: 5_000,
  })

/**
 * The HTTP server. It listens at once and answers /livez; `serve` hands it the services and makes it ready; `drain`
 * stops admission, lets running requests end until the deadline, interrupts the rest, and closes.
 */
export async function openServer({ config, log }: { config: Config; log: Log }) {
  const { limits } = config
  let state: State = 'starting'
  let services: Services | undefined
  let running = 0
  let idle: (() => void) | undefined
  const wrongTokens = openWrongTokenLimiter(limits.wrong_tokens_per_minute)
  const hosts = new Set(config.allowed_hosts.map(host => host.toLowerCase()))
  if (config.public_url) hosts.add(hostName(new URL(config.public_url).host) ?? '')

  const handleWithH3 = toNodeHandler(
    router((route, params, req, res) => dispatch(route, params, req, res, { services: services!, wrongTokens }), log),
  )

  const server = createServer(
    {
      connectionsCheckingInterval: Math.min(1_000, limits.headers_timeout),
      headersTimeout: limits.headers_timeout,
      requestTimeout: limits.request_timeout,
      keepAliveTimeout: limits.keep_alive_timeout,
      maxHeaderSize: 16_384,
      insecureHTTPParser: false,
      requireHostHeader: false,
      noDelay: true,
    },
    (req, res) => {
      if (!hostAllowed(req.rawHeaders, hosts)) {
        refuse(
          res,
          new Failure(
            'invalid_host',
            `This server does not answer under the name '${(req.headers.host ?? '').slice(0, 100)}'. Add it to allowed_hosts in infer.yaml.`,
          ),
          newId('req'),
        )
        return
      }
      req.url = tidy(req.url ?? '/')
      if (state !== 'ready' && (req.url !== '/livez' || !services)) {
        if (req.url === '/livez') plain(res, 200, 'ok\n')
        else refuse(res, state === 'starting' ? starting() : stopping(), newId('req'))
        return
      }
      running++
      res.once('close', () => {
        if (--running === 0) idle?.()
      })
      void handleWithH3(req as never, res as never)
    },
  )
  server.maxRequestsPerSocket = 1_000
  server.maxConnections = limits.connections
  // A request that cannot be parsed never reaches a handler; it still gets our envelope.
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (socket.destroyed || !socket.writable) return
    const large = error.code === 'HPE_HEADER_OVERFLOW'
    const status = large
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request'
    const body = JSON.stringify({
      error: {
        code: 'invalid_value',
        message: large
          ? 'The request headers are larger than 16 KiB.'
          : 'This is not a well-formed HTTP request, or it was not sent in time.',
        type: 'invalid_request_error',
        param: null,
      },
    })
    socket.end(
      `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    )
  })

  await listen(server, config.listen)
  const { address, port, family } = server.address() as AddressInfo
  const shownHost =
    address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address

  return {
    url: `http://${shownHost}:${port}`,
    /** The services are open: from now on requests are admitted. */
    serve(opened: Services): void {
      services = opened
      state = 'ready'
    },
    /** Resolves when every connection is gone. Requests still running after `deadlineMs` are interrupted. */
    async drain(deadlineMs: number): Promise<void> {
      state = 'draining'
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      server.closeIdleConnections()
      if (running > 0) {
        const timer = setTimeout(() => services?.streams.interruptAll(), deadlineMs)
        const last = setTimeout(() => idle?.(), deadlineMs + 1_000)
        await new Promise<void>(resolve => (idle = resolve))
        clearTimeout(timer)
        clearTimeout(last)
      }
      server.closeAllConnections()
      await closed
    },
    /** How many requests are being answered. */
    get running(): number {
      return running
    },
  }
}
export type Server = Awaited<ReturnType<typeof openServer>>

type Dispatcher = (
  route: Route,
  params: Record<string, string>,
  req: IncomingMessage,
  res: ServerResponse,
) => Promise<void>

/** All routes and their aliases in h3's router; what matches none is told apart: wrong method, or no such URL. */
function router(to: Dispatcher, log: Log): H3 {
  const app = new H3({
    onError(error) {
      log.error('The router failed', {}, error.cause ?? error)
    },
  })
  const methods = new Map<string, Set<string>>()
  for (const route of routes)
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      const allowed = methods.get(path) ?? new Set()
      methods.set(path, allowed.add(route.method))
      const handler = (event: { runtime?: unknown; context: { params?: Record<string, string> } }) => {
        const { req, res } = (event.runtime as { node: { req: IncomingMessage; res: ServerResponse } }).node
        return to(route, decoded(event.context.params), req, res).then(() => handled as never)
      }
      app.on(route.method, path, handler as never)
      if (route.method === 'GET') app.on('HEAD', path, handler as never)
    }
  const otherwise =
    (failure: (req: IncomingMessage) => Failure, headers?: string[]) => (event: { runtime?: unknown }) => {
      const { req, res } = (event.runtime as { node: { req: IncomingMessage; res: ServerResponse } }).node
      if (headers) res.setHeader(headers[0]!, headers[1]!)
      refuse(res, failure(req), newId('req'))
      return handled as never
    }
  for (const [path, allowed] of methods)
    app.all(
      path,
      otherwise(
        req =>
          new Failure('method_not_allowed', `${req.method} is not possible here; ${[...allowed].join(' and ')} is.`),
        ['allow', [...allowed].join(', ')],
      ) as never,
    )
  app.all(
    '/**',
    otherwise(
      req =>
        new Failure(
          'unknown_url',
          `Invalid URL (${req.method} ${pathOf(req).slice(0, 200)}). The reference is at /docs.`,
        ),
    ) as never,
  )
  return app
}

/** Model ids with a slash come encoded or raw; either way the handler sees the id. */
function decoded(params: Record<string, string> | undefined): Record<string, string> {
  if (!params) return {}
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      try {
        return [name, decodeURIComponent(value)]
      } catch {
        return [name, value]
      }
    }),
  )
}

const pathOf = (req: IncomingMessage): string => (req.url ?? '/').split('?')[0]!

/** Trailing and doubled slashes are ignored; the query is left as it is. */
function tidy(url: string): string {
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  if (!path.includes('//') && (path.length === 1 || !path.endsWith('/'))) return url
  const clean = path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
  return at < 0 ? clean : clean + url.slice(at)
}

function plain(res: ServerResponse, status: number, text: string): void {
  res.writeHead(status, ['content-type', 'text/plain', 'content-length', String(text.length)])
  res.end(text)
}

function listen(server: ReturnType<typeof createServer>, at: string): Promise<void> {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(at)
  if (!match)
    return Promise.reject(
      new Failure('invalid_value', `The listen address '${at}' is not host:port, for example 127.0.0.1:8787.`),
    )
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === 'EADDRINUSE'
          ? 'another program listens there. Stop it, or choose another address with --listen'
          : cause.message
      reject(new Failure('conflict', `Cannot listen on ${at}: ${why}.`, { cause }))
    })
    server.listen({ host: match[1] ?? (match[2] || '127.0.0.1'), port: Number(match[3]), backlog: 1024 }, resolve)
  })
}
