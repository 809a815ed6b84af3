import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { createServer as createSocketServer, Server as SocketServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { openWrongTokenLimiter } from '../core/accounts/limiter.ts'
import { Failure } from '../core/failure.ts'
import { newId } from '../core/ids.ts'
import { listenAddress } from '../core/listen-address.ts'
import type { Store } from '../core/store/store.ts'
import { SwapSet } from '../core/swap-set.ts'
import { type ControlSocketOptions, openControlSocket } from './fronts/control-socket.ts'
import type { FrontWorkOptions, FrontWorkOwner } from './fronts/front-work.ts'
import { openFronts } from './fronts/fronts.ts'
import { openAccessWatch } from './http/access/access-watch.ts'
import { discardRest } from './http/body/unread-body.ts'
import { configureServer } from './http/configure-server.ts'
import { type KeyPair, type KeyPairFiles, openCertificate } from './http/connection/certificate.ts'
import { openCors } from './http/connection/cors.ts'
import { adopt, forward, forwardUpgrade, readClient } from './http/connection/forward.ts'
import { forwardedHost } from './http/connection/forwarded.ts'
import type { Handshakes } from './http/connection/handshakes.ts'
import { commonHeaders } from './http/connection/head.ts'
import { hostFailure, hostNameFailure, hostRulesOf } from './http/connection/host.ts'
import { openHttpApp } from './http/http-app.ts'
import { tidy } from './http/path.ts'
import type { ClientExchange } from './http/request/exchange.ts'
import { openIdempotencyRecords } from './http/request/idempotency-records.ts'
import type { Owners } from './http/request/owners.ts'
import type { Route } from './http/request/route.ts'
import { answerFailure, endExchange, type HttpEvent, interrupt, runRoute } from './http/run-route.ts'
import { openResumableStreams } from './http/streams/resumable-streams.ts'
import { openStreamLimits } from './http/streams/stream-limits.ts'
import { errorsBelow, routes } from './routes.ts'
import { belowRoot, falRoots, partAddress, unproxied } from './surfaces/fal/addresses.ts'
import { noEphemeralTokens } from './surfaces/realtime/routes.ts'
import { asksForWebSocket, responseOf } from './surfaces/realtime/upgrade.ts'

/** Milliseconds after the last answer of a drain in which connections in the kernel's queue are still accepted. */
const acceptAfterDrainMs = 50
/** Milliseconds that their clients have to read the answer. */
const closeTimeoutMs = 250
/** How often the open connections are counted after a hand-over, milliseconds. */
const connectionCheckMs = 100

/** Paths that are answered in every state of the server. */
const alive = /^\/(livez|healthz)(\?|$)/

/**
 * `holding`: requests wait until another server has taken over. `forwarding`: that server answers them.
 */
type State = 'starting' | 'ready' | 'draining' | 'holding' | 'forwarding'

/**
 * Until `serve` is called, everything but /livez is answered with 503, so that no client takes a start for readiness.
 */
const starting = () =>
  new Failure('model_warming_up', 'The server is starting and recovers its store first. Try again in 1 s.', {
    retryAfterMs: 1_000,
  })
const stopping = () =>
  new Failure('shutting_down', 'The server is stopping and accepts no new requests. Send it again in 5 s.', {
    retryAfterMs: 5_000,
  })
const interrupted = () =>
  new Failure('shutting_down', 'The server is stopping and could not finish this request. Send it again in 5 s.', {
    retryAfterMs: 5_000,
  })

/** Serve HTTPS: with the key pair in these files, or with a self-signed one that is stored in the data directory. */
export interface HttpsOptions {
  dataDir: string
  files: KeyPairFiles | undefined
}

/** What a server inherits from the one before it. */
export interface Inheritance {
  /** File descriptor of its listening socket. */
  listener: number
  /** Where to listen for the requests that it forwards: the path of a Unix socket. */
  forwarding: string
}

/**
 * Opens the HTTP server, with `gateway` behind as many gateway processes as configured. It listens at once and answers
 * /livez. `serve` passes the owners and makes it ready. `drain` stops admission, lets running requests end until the
 * deadline, interrupts the rest, and closes.
 */
export async function openServer(
  options: Owners<'config' | 'log'> & {
    https?: HttpsOptions | undefined
    gateway?: { dataDir: string } | undefined
    inherited?: Inheritance | undefined
  },
) {
  const { config, log, https, inherited } = options
  const { limits } = config
  let state: State = 'starting'
  let owners: Owners | undefined
  let running = 0
  let idle: (() => void) | undefined
  let handshakes: Handshakes | undefined
  /** Requests that wait for another state. */
  let held: (() => void)[] = []
  let successor = ''
  const exchanges = new SwapSet<ClientExchange>()
  const wrongTokens = openWrongTokenLimiter(limits.wrong_tokens_per_minute)
  const hosts = hostRulesOf(config, https !== undefined)

  const cors = openCors(config.cors.origins)
  const roots = falRoots(config.allowed_hosts)

  /** First segments of the paths of all routes. */
  let segments: ReadonlySet<string> = new Set()
  let table: readonly Route[] = []

  /** Opens the app. Without owners it has no routes: every request is refused until `serve`. */
  function openApp(opened: Owners | undefined) {
    const options = { owners: opened!, exchanges }
    table = opened ? routes(opened) : []
    segments = new Set(table.flatMap(({ path, aliases = [] }) => [path, ...aliases].map(one => one.split('/')[1]!)))
    return openHttpApp<HttpEvent>({
      routes: table,
      begin: (req, res) => ({ req, res, params: {}, exchange: undefined }),
      handle: (route, event) => runRoute(route, event, options),
      explain: noEphemeralTokens,
      onError: (thrown, event) => answerFailure(thrown, event, { log, errorsBelow }),
      end: event => endExchange(event, options),
    })
  }
  let app = openApp(undefined)

  const handler = (req: IncomingMessage, res: ServerResponse & { maxRequestsOnConnectionReached?: boolean }) => {
    if ((state === 'holding' || (state === 'starting' && inherited)) && !alive.test(req.url ?? ''))
      return void held.push(() => !req.socket.destroyed && handler(req, res))
    readClient(req)
    if (state === 'forwarding') return pass(req, res)
    // Node sends `Connection: close` with the last answer of a connection but keeps the connection open.
    if (res.maxRequestsOnConnectionReached) res.shouldKeepAlive = false
    const reported = forwardedHost(req, config.trusted_proxies)
    const fault = hostFailure(req, hosts) ?? (reported === undefined ? undefined : hostNameFailure(reported, hosts))
    if (fault) return app.refuse(req, res, fault)
    const url = belowRoot(tidy(req.url ?? '/'), req, roots, segments)
    req.url = tidy(unproxied(partAddress(url), req.headers))
    try {
      const { headers, preflight } = cors(req)
      for (let at = 0; at < headers.length; at += 2) res.setHeader(headers[at]!, headers[at + 1]!)
      if (preflight) return void res.writeHead(204, commonHeaders(req, newId('req'))).end()
    } catch (refused) {
      return app.refuse(req, res, Failure.from(refused))
    }
    if (state !== 'ready' && !(owners && alive.test(req.url))) {
      if (alive.test(req.url)) plain(res, 200, 'ok\n')
      else app.refuse(req, res, state === 'starting' ? starting() : stopping())
      return
    }
    count(res)
    app.answer(req, res)
  }

  /** Lets the next server answer. */
  function pass(req: IncomingMessage, res: ServerResponse) {
    count(res)
    forward(req, res, successor, { failed: () => app.refuse(req, res, interrupted()), discardRest })
  }

  function upgrade(req: IncomingMessage, socket: Duplex, head: Buffer) {
    if (state === 'holding') held.push(() => upgrade(req, socket, head))
    else if (state === 'forwarding') forwardUpgrade(req, socket, head, successor)
    else handler(req, responseOf(req, socket, head))
  }

  function changeState(next: State) {
    state = next
    for (const begin of held.splice(0)) begin()
  }

  function count(res: ServerResponse) {
    running++
    res.once('close', () => {
      if (--running === 0) idle?.()
    })
  }

  const edge = { handler, asksForWebSocket, upgrade }
  const certificate = https && openCertificate(https, config)
  // Loaded lazily, because no other command needs it.
  const { openListener } = await import('./http/connection/listen.ts')
  const { server, listen, urls, keyPair } = await openListener({
    handler,
    at: config.listen,
    https: certificate?.source,
    shared: options.gateway !== undefined,
    inherited: inherited?.listener,
    configure(opened) {
      handshakes = configureServer(opened, { ...edge, limits, connections: limits.connections })
    },
  })
  // From here on an error is a connection that could not be accepted: it is logged, and the server continues.
  server.on('error', cause => log.warn('A connection was not accepted', {}, cause))
  if (keyPair) certificate?.opened(keyPair)
  const gateway = options.gateway && (await openGateway({ ...options.gateway, config, listen, keyPair, log, edge }))
  const forwarded =
    inherited &&
    createSocketServer(socket => {
      adopt(socket)
      // Not encrypted, whatever the connection of the client is.
      server.emit(https ? 'secureConnection' : 'connection', socket)
    }).listen(inherited.forwarding)
  forwarded?.unref()

  /** Resolves when no request runs. Interrupts those that still run after `deadlineMs`. */
  async function finishRequests(deadlineMs: number): Promise<void> {
    if (running === 0) return
    const timer = setTimeout(() => {
      owners?.streams.interruptAll()
      for (const exchange of exchanges) interrupt(exchange, interrupted(), log)
    }, deadlineMs)
    const last = setTimeout(() => idle?.(), deadlineMs + 1_000)
    await new Promise<void>(resolve => (idle = resolve))
    clearTimeout(timer)
    clearTimeout(last)
  }

  return {
    /** The base URL for this machine. */
    url: urls[0],
    /** All base URLs of the server, `url` first. */
    urls,
    /** The address of its socket, such as `0.0.0.0:8787`. */
    listen,
    /** The certificate that clients see, PEM; undefined for HTTP. */
    get certificate(): string | undefined {
      return certificate?.current
    },
    /** Reads the certificate files again and uses them for new connections. Throws what `openServer` would throw. */
    reloadCertificate(): void {
      const pair = certificate?.read()
      if (!pair) return
      ;(server as HttpsServer).setSecureContext(pair)
      gateway?.fronts.use(pair)
    },
    /** Resolves when the gateway processes have taken over the address, if there are any. */
    async takenOver(): Promise<void> {
      if (!gateway) return
      await gateway.fronts.listening
      server.close()
      server.closeIdleConnections()
    },
    /** Lets the gateway processes answer what they can themselves, if there are any. */
    serveFronts(open: (options: Pick<FrontWorkOptions, 'routeAt'>) => FrontWorkOwner): FrontWorkOwner | undefined {
      if (!gateway) return undefined
      const work = open({ routeAt: path => table.find(route => route.path === path) })
      gateway.fronts.serve(work)
      return work
    },
    /** Passes the owners; requests are admitted from now on. The store is used for idempotency records only. */
    serve({
      store,
      ...opened
    }: Omit<Owners, 'access' | 'exchanges' | 'idempotency' | 'resumable' | 'streamLimits' | 'wrongTokens'> & {
      store: Pick<Store, 'idempotency'>
    }): void {
      owners = {
        ...opened,
        access: openAccessWatch(opened),
        streamLimits: openStreamLimits(limits),
        resumable: openResumableStreams(),
        exchanges,
        wrongTokens,
        idempotency: openIdempotencyRecords({ ...opened, store }),
      }
      app = openApp(owners)
      changeState('ready')
    },
    /** Resolves when every connection is closed. Interrupts requests that still run after `deadlineMs`. */
    async drain(deadlineMs: number): Promise<void> {
      changeState('draining')
      const fronts = gateway?.fronts.drain(deadlineMs)
      owners?.streams.dismissAll()
      // New requests, on new or kept connections, get 503 with `Retry-After`: closing the listener at once would reset
      // connections in the kernel's queue, and their clients could not know that nothing was processed.
      await finishRequests(deadlineMs)
      await fronts
      await delay(acceptAfterDrainMs)
      await gateway?.fronts.close()
      await gateway?.socket.close()
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      // Every answer during the drain closes its connection, so connections that stay open have no running request.
      await Promise.race([closed, delay(closeTimeoutMs, undefined, { ref: false })])
      handshakes?.closeAll()
      server.closeAllConnections()
      await closed
    },
    /** Whether gateway processes accept its connections. */
    hasGateway: gateway !== undefined,
    /** File descriptor of the listening socket, for the process of another server; undefined where there is none. */
    get listener(): number | undefined {
      return (server as { _handle?: { fd?: number } })._handle?.fd
    },
    /** Lets new requests wait until `handOver`. Those that run continue. */
    hold: () => changeState('holding'),
    /**
     * Stops listening, because another server has the same socket, and lets that server answer the requests that waited
     * and those that arrive on open connections, each of which is closed with its answer. `forwarding`: the path of its
     * Unix socket.
     */
    handOver(forwarding: string): void {
      successor = forwarding
      changeState('forwarding')
      // Not that of the HTTP server, which also closes connections on which a request may be arriving.
      SocketServer.prototype.close.call(server)
      owners?.streams.dismissAll()
    },
    /**
     * After `handOver`: resolves when the running requests have ended and their connections are closed. Interrupts those
     * that still run after `deadlineMs`.
     */
    async finish(deadlineMs: number): Promise<void> {
      const until = performance.now() + deadlineMs
      for (;;) {
        await finishRequests(Math.max(0, until - performance.now()))
        // An open connection may send another request until it has been idle for so long.
        const open = await new Promise<number>(resolve => server.getConnections((_, count) => resolve(count ?? 0)))
        // What is forwarded, such as an event stream, may never end by itself.
        if (performance.now() > until || (running === 0 && open === 0)) break
        await delay(connectionCheckMs)
      }
      server.closeAllConnections()
    },
    /** Call it when the server that forwards requests has ended. */
    closeForwarding: (): void => void forwarded?.close(),
    /** How many requests are being answered. */
    get running(): number {
      return running
    },
  }
}
export type Server = Awaited<ReturnType<typeof openServer>>

interface GatewayOptions extends Owners<'config' | 'log'> {
  dataDir: string
  listen: string
  keyPair: KeyPair | undefined
  edge: Omit<ControlSocketOptions, 'dataDir'>
}

/** Starts the gateway processes, and the socket on which they pass requests on. */
async function openGateway({ config, dataDir, listen, keyPair, log, edge }: GatewayOptions) {
  const { gateway_processes: count, limits } = config
  const { backlog, cannotListen } = await import('./http/connection/listen.ts')
  const socket = await openControlSocket({ dataDir, ...edge })
  const fronts = openFronts({
    count,
    ...listenAddress(listen)!,
    backlog,
    keyPair,
    limits,
    connections: Math.ceil(limits.connections / count),
    socketPath: socket.path,
    secret: socket.secret,
    refused: error => cannotListen(listen, Object.assign(new Error(error.message), error)),
    log,
  })
  return { socket, fronts }
}

function plain(res: ServerResponse, status: number, text: string) {
  res.writeHead(status, [
    'content-type',
    'text/plain; charset=utf-8',
    'content-length',
    String(text.length),
    ...commonHeaders(res.req, newId('req')),
  ])
  res.end(text)
}
