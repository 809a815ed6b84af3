import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { openWrongTokenLimiter } from '../core/accounts/limiter.ts'
import { Failure } from '../core/failure.ts'
import { newId } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
import type { Config } from '../core/models/config.ts'
import { SwapSet } from '../core/swap-set.ts'
import type { Call } from './call.ts'
import { dispatch, interrupt } from './dispatch.ts'
import { refuse } from './errors.ts'
import { unproxied } from './fal/proxy.ts'
import { commonHeaders } from './head.ts'
import { hostAllowed, hostName } from './host.ts'
import { openReplies } from './idempotency.ts'
import type { Owners } from './owners.ts'
import { openRouter, tidy } from './router.ts'

/** After the last answer of a drain: how long those who already stand before the door are let in to be told. */
const lastGuestsMs = 50
/** And how long they have to read it. */
const lastWordsMs = 250

/** What is answered whatever the server is about to do. */
const alive = /^\/(livez|healthz)(\?|$)/

type State = 'starting' | 'ready' | 'draining'

/** A warm-up must not be mistaken for readiness: until `serve`, everything but /livez is answered with 503. */
const starting = () =>
  new Failure('model_warming_up', 'The server is starting: it recovers its store first. Try again in a moment.', {
    retryAfterMs: 1_000,
  })
const stopping = () =>
  new Failure('shutting_down', 'The server is stopping and takes no new requests. Send it again in a moment.', {
    retryAfterMs: 5_000,
  })
const interrupted = () =>
  new Failure('shutting_down', 'The server is stopping and could not finish this request. Send it again in a moment.', {
    retryAfterMs: 5_000,
  })

/**
 * The HTTP server. It listens at once and answers /livez; `serve` hands it the owners and makes it ready; `drain`
 * stops admission, lets running requests end until the deadline, interrupts the rest, and closes.
 */
export async function openServer({ config, log }: { config: Config; log: Log }) {
  const { limits } = config
  let state: State = 'starting'
  let owners: Owners | undefined
  let running = 0
  let idle: (() => void) | undefined
  const calls = new SwapSet<Call>()
  const wrongTokens = openWrongTokenLimiter(limits.wrong_tokens_per_minute)
  const hosts = new Set(config.allowed_hosts.map(host => host.toLowerCase()))
  if (config.public_url) hosts.add(hostName(new URL(config.public_url).host) ?? '')

  const handle = openRouter((route, params, req, res) =>
    dispatch(route, params, req, res, { owners: owners!, wrongTokens, calls }),
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
    (req, res: ServerResponse & { maxRequestsOnConnectionReached?: boolean }) => {
      // Node says `Connection: close` with the last answer of a connection, and leaves it open all the same.
      if (res.maxRequestsOnConnectionReached) res.shouldKeepAlive = false
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
      req.url = tidy(unproxied(tidy(req.url ?? '/'), req.headers))
      if (state !== 'ready' && !(owners && alive.test(req.url))) {
        if (alive.test(req.url)) plain(res, 200, 'ok\n')
        else refuse(res, state === 'starting' ? starting() : stopping(), newId('req'))
        return
      }
      running++
      res.once('close', () => {
        if (--running === 0) idle?.()
      })
      handle(req, res)
    },
  )
  server.maxRequestsPerSocket = 1_000
  server.maxConnections = limits.connections
  // A request that cannot be parsed never reaches a handler; it still gets our envelope.
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (socket.destroyed || !socket.writable) return
    const id = newId('req')
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
        request_id: id,
      },
    })
    socket.end(
      `HTTP/1.1 ${status}\r\nx-request-id: ${id}\r\nx-content-type-options: nosniff\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    )
  })

  await listen(server, config.listen, log)
  const { address, port, family } = server.address() as AddressInfo
  const shownHost =
    address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address

  return {
    url: `http://${shownHost}:${port}`,
    /** The owners are open: from now on requests are admitted. */
    serve(opened: Omit<Owners, 'calls' | 'replies'>): void {
      owners = { ...opened, calls, replies: openReplies(opened) }
      state = 'ready'
    },
    /** Resolves when every connection is gone. Requests still running after `deadlineMs` are interrupted. */
    async drain(deadlineMs: number): Promise<void> {
      state = 'draining'
      owners?.streams.dismissAll()
      // Whoever comes now, anew or on a connection that was kept, is told when to come back: a door that is closed at
      // once resets those that stand before it, and they cannot know that nothing of theirs was done.
      if (running > 0) {
        const timer = setTimeout(() => {
          owners?.streams.interruptAll()
          for (const call of calls) interrupt(call, interrupted())
        }, deadlineMs)
        const last = setTimeout(() => idle?.(), deadlineMs + 1_000)
        await new Promise<void>(resolve => (idle = resolve))
        clearTimeout(timer)
        clearTimeout(last)
      }
      await delay(lastGuestsMs)
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      // Every answer of these last moments ends its connection, so what is still open after that is nobody's.
      await Promise.race([closed, delay(lastWordsMs, undefined, { ref: false })])
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

function plain(res: ServerResponse, status: number, text: string): void {
  res.writeHead(status, [
    'content-type',
    'text/plain; charset=utf-8',
    'content-length',
    String(text.length),
    ...commonHeaders(res.req, newId('req')),
  ])
  res.end(text)
}

function listen(server: ReturnType<typeof createServer>, at: string, log: Log): Promise<void> {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(at)
  if (!match)
    return Promise.reject(
      new Failure('invalid_value', `The listen address '${at}' is not host:port, for example 127.0.0.1:8787.`),
    )
  return new Promise((resolve, reject) => {
    const refused = (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === 'EADDRINUSE'
          ? 'another program listens there. Stop it, or choose another address with --listen'
          : cause.message
      reject(new Failure('conflict', `Cannot listen on ${at}: ${why}.`, { cause }))
    }
    server.once('error', refused)
    server.listen({ host: match[1] ?? (match[2] || '127.0.0.1'), port: Number(match[3]), backlog: 1024 }, () => {
      // From here on an error is a connection that could not be accepted: worth a line, no reason to stop.
      server.off('error', refused).on('error', cause => log.warn('A connection was not accepted', {}, cause))
      resolve()
    })
  })
}
