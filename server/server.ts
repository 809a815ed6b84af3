import { closeSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { openAddressLimiter } from '../core/accounts/limiter.ts'
import { Failure } from '../core/failure.ts'
import { newId } from '../core/ids.ts'
import { listenAddress } from '../core/listen-address.ts'
import type { Store } from '../core/store/store.ts'
import { SwapSet } from '../core/swap-set.ts'
import { type ControlSocket, openControlSocket } from './fronts/control-socket.ts'
import { type ForwardTarget, openForwarder } from './fronts/forward.ts'
import type { FrontWorkOptions, FrontWorkOwner } from './fronts/front-work.ts'
import { openFronts, type StartedFronts } from './fronts/fronts.ts'
import { openAccessWatch } from './http/access/access-watch.ts'
import { configureServer } from './http/configure-server.ts'
import { openAcceptors } from './http/connection/acceptors.ts'
import { type KeyPair, type KeyPairFiles, openCertificate } from './http/connection/certificate.ts'
import { openCors } from './http/connection/cors.ts'
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
  /** Where the socket is opened on which that server passes requests on. */
  dataDir: string
  /** File descriptors of the sockets that listen on its address: at least one. */
  sockets: readonly number[]
  /** The first of them again, for this process itself beside its gateway processes. */
  listener: number
}

/** The gateway processes of a server. */
export interface GatewayOptions {
  dataDir: string
  /** Those that were started before; absent: they are started with the server. */
  started?: StartedFronts | undefined
}

/**
 * Opens the HTTP server, with `gateway` behind as many gateway processes as configured. It listens at once and answers
 * /livez. `serve` passes the owners and makes it ready. `drain` stops admission, lets running requests end until the
 * deadline, interrupts the rest, and closes.
 */
export async function openServer(
  options: Owners<'config' | 'log'> & {
    https?: HttpsOptions | undefined
    gateway?: GatewayOptions | undefined
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
  /** Resolves when the gateway processes have left, after `handOver`. */
  let left: Promise<void> | undefined
  let successor: ReturnType<typeof openForwarder> | undefined
  const exchanges = new SwapSet<ClientExchange>()
  const wrongTokens = openAddressLimiter(limits.wrong_tokens_per_minute)
  const linkReads = openAddressLimiter(limits.link_reads_per_minute)
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
    successor!.forward(req, res)
  }

  function upgrade(req: IncomingMessage, socket: Duplex, head: Buffer) {
    if (state === 'holding') held.push(() => upgrade(req, socket, head))
    else if (state === 'forwarding') successor!.upgrade(req, socket, head)
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
  const dataDir = options.gateway?.dataDir ?? inherited?.dataDir
  /** Where gateway processes, and the server before this one, pass requests on. */
  const control = dataDir === undefined ? undefined : await openControlSocket({ dataDir, ...edge })
  const started = options.gateway?.started
  const fronts =
    options.gateway && (await openGateway({ config, started, inherited, listen, keyPair, log, control: control! }))
  const acceptors = openAcceptors(server, fronts ? [] : (inherited?.sockets.slice(1) ?? []))
  // It is that of the server itself.
  if (inherited && !fronts) closeSync(inherited.sockets[0]!)

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
      fronts?.use(pair)
    },
    /** Resolves when the gateway processes have taken over the address, if there are any. */
    async takenOver(): Promise<void> {
      if (!fronts) return
      await fronts.listening
      acceptors.stop()
    },
    /** Lets the gateway processes answer what they can themselves, if there are any. */
    serveFronts(open: (options: Pick<FrontWorkOptions, 'routeAt'>) => FrontWorkOwner): FrontWorkOwner | undefined {
      if (!fronts) return undefined
      const work = open({ routeAt: path => table.find(route => route.path === path) })
      fronts.serve(work)
      return work
    },
    /** Passes the owners; requests are admitted from now on. The store is used for idempotency records only. */
    serve({
      store,
      ...opened
    }: Omit<
      Owners,
      'access' | 'exchanges' | 'idempotency' | 'linkReads' | 'resumable' | 'streamLimits' | 'wrongTokens'
    > & {
      store: Pick<Store, 'idempotency'>
    }): void {
      owners = {
        ...opened,
        access: openAccessWatch(opened),
        streamLimits: openStreamLimits(limits),
        resumable: openResumableStreams(),
        exchanges,
        wrongTokens,
        linkReads,
        idempotency: openIdempotencyRecords({ ...opened, store }),
      }
      app = openApp(owners)
      changeState('ready')
    },
    /** Resolves when every connection is closed. Interrupts requests that still run after `deadlineMs`. */
    async drain(deadlineMs: number): Promise<void> {
      changeState('draining')
      const drained = fronts?.drain(deadlineMs)
      owners?.streams.dismissAll()
      // New requests, on new or kept connections, get 503 with `Retry-After`: closing the listener at once would reset
      // connections in the kernel's queue, and their clients could not know that nothing was processed.
      await finishRequests(deadlineMs)
      await drained
      await delay(acceptAfterDrainMs)
      await fronts?.close()
      await control?.close()
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      // Every answer during the drain closes its connection, so connections that stay open have no running request.
      acceptors.stop()
      const ended = Promise.all([closed, acceptors.ended(closeTimeoutMs)])
      await Promise.race([ended, delay(closeTimeoutMs, undefined, { ref: false })])
      handshakes?.closeAll()
      server.closeAllConnections()
      await closed
    },
    /** File descriptors of the listening sockets, for the process of another server; empty where they cannot be passed on. */
    sockets: (): number[] => fronts?.sockets() ?? acceptors.descriptors(),
    /** Lets new requests wait until `handOver`; those that run continue. Resolves when no gateway process begins any. */
    async hold(): Promise<void> {
      changeState('holding')
      await fronts?.hold()
    },
    /**
     * Stops listening, because another server has the same sockets, and lets that server answer the requests that waited
     * and those that arrive on open connections, each of which is closed with its answer. Gateway processes interrupt what
     * still runs after `deadlineMs`.
     */
    handOver(to: ForwardTarget, deadlineMs: number): void {
      successor = openForwarder(to, { isLast: true })
      changeState('forwarding')
      acceptors.stop()
      left = fronts?.leave(to, deadlineMs)
      owners?.streams.dismissAll()
    },
    /**
     * After `handOver`: resolves when the running requests have ended and their connections are closed. Interrupts those
     * that still run after `deadlineMs`. `before`: the server before this one has ended, which passes requests on to it.
     */
    async finish(deadlineMs: number, before?: Promise<void>): Promise<void> {
      const until = performance.now() + deadlineMs
      await finishRequests(deadlineMs)
      // What is passed on, such as an event stream, may never end by itself.
      await Promise.all([acceptors.ended(until - performance.now()), left, before])
      server.closeAllConnections()
      successor?.close()
      await control?.close()
    },
    /** Where the server before this one passes requests on; undefined without one and without gateway processes. */
    get forwarding(): ForwardTarget | undefined {
      return control && { socketPath: control.path, secret: control.secret }
    },
    /** Call it when the server that passes requests on has ended. */
    closeForwarding(): void {
      if (!fronts) void control?.close()
    },
    /** How many requests are being answered. */
    get running(): number {
      return running
    },
  }
}
export type Server = Awaited<ReturnType<typeof openServer>>

interface OpenGatewayOptions extends Owners<'config' | 'log'>, Pick<GatewayOptions, 'started'> {
  inherited: Inheritance | undefined
  listen: string
  keyPair: KeyPair | undefined
  control: ControlSocket
}

/** Starts the gateway processes. */
async function openGateway({ config, started, inherited, listen, keyPair, log, control }: OpenGatewayOptions) {
  const { gateway_processes: count, limits } = config
  const { backlog, cannotListen } = await import('./http/connection/listen.ts')
  return openFronts({
    count,
    started,
    sockets: inherited?.sockets,
    ...listenAddress(listen)!,
    backlog,
    keyPair,
    limits,
    connections: Math.ceil(limits.connections / count),
    socketPath: control.path,
    secret: control.secret,
    refused: error => cannotListen(listen, Object.assign(new Error(error.message), error)),
    log,
  })
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
