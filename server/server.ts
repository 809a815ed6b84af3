import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { openWrongTokenLimiter } from '../core/accounts/limiter.ts'
import { Failure } from '../core/failure.ts'
import { newId } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
import type { Config } from '../core/models/config.ts'
import type { Store } from '../core/store/store.ts'
import { SwapSet } from '../core/swap-set.ts'
import { openAccessWatch } from './access-watch.ts'
import type { Call } from './call.ts'
import { type KeyPairFiles, openCertificate } from './certificate.ts'
import { answerClientError } from './client-error.ts'
import { openCors } from './cors.ts'
import { answerFailure, type CallEvent, dispatch, endCall, interrupt } from './dispatch.ts'
import { belowRoot, falRoots } from './fal/hosts.ts'
import { partAddress } from './fal/parts.ts'
import { unproxied } from './fal/proxy.ts'
import { forwardedHost } from './forwarded.ts'
import { type Handshakes, openHandshakes } from './handshakes.ts'
import { commonHeaders } from './head.ts'
import { hostFault, hostName, nameFault } from './host.ts'
import { openHttpApp } from './http-app.ts'
import { openIdempotencyRecords } from './idempotency.ts'
import type { Owners } from './owners.ts'
import { tidy } from './path.ts'
import { routes } from './routes.ts'
import { openStreamLimits } from './stream-limits.ts'

/** After the last answer of a drain: how long those who already stand before the door are let in to be told. */
const acceptAfterDrainMs = 50
/** And how long they have to read it. */
const closeTimeoutMs = 250

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

/** Speak HTTPS: with the key pair in these files, or with a self-signed one that the data directory keeps. */
export interface HttpsOptions {
  dataDir: string
  files: KeyPairFiles | undefined
}

/**
 * The HTTP server. It listens at once and answers /livez; `serve` hands it the owners and makes it ready; `drain`
 * stops admission, lets running requests end until the deadline, interrupts the rest, and closes.
 */
export async function openServer({
  config,
  log,
  https,
}: {
  config: Config
  log: Log
  https?: HttpsOptions | undefined
}) {
  const { limits } = config
  let state: State = 'starting'
  let owners: Owners | undefined
  let running = 0
  let idle: (() => void) | undefined
  let handshakes: Handshakes | undefined
  const calls = new SwapSet<Call>()
  const wrongTokens = openWrongTokenLimiter(limits.wrong_tokens_per_minute)
  const allowed = new Set(config.allowed_hosts.map(host => host.toLowerCase()))
  if (config.public_url) allowed.add(hostName(new URL(config.public_url).host) ?? '')
  const hosts = { allowed, defaultPort: https ? 443 : 80 }

  const cors = openCors(config.cors.origins)
  const roots = falRoots(config.allowed_hosts)

  /** First segments of the paths of all routes. */
  let segments: ReadonlySet<string> = new Set()

  /** Without owners there are no routes: until `serve` every request is refused. */
  function openApp(opened: Owners | undefined) {
    const options = { owners: opened!, wrongTokens, calls }
    const table = opened ? routes(opened) : []
    segments = new Set(table.flatMap(({ path, aliases = [] }) => [path, ...aliases].map(one => one.split('/')[1]!)))
    return openHttpApp<CallEvent>({
      routes: table,
      begin: (req, res) => ({ req, res, params: {}, call: undefined }),
      handle: (route, event) => dispatch(route, event, options),
      onError: (thrown, event) => answerFailure(thrown, event, log),
      end: event => endCall(event, options),
    })
  }
  let app = openApp(undefined)

  const handler = (req: IncomingMessage, res: ServerResponse & { maxRequestsOnConnectionReached?: boolean }) => {
    // Node says `Connection: close` with the last answer of a connection, and leaves it open all the same.
    if (res.maxRequestsOnConnectionReached) res.shouldKeepAlive = false
    const reported = forwardedHost(req, config.trusted_proxies)
    const fault = hostFault(req, hosts) ?? (reported === undefined ? undefined : nameFault(reported, hosts))
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
    running++
    res.once('close', () => {
      if (--running === 0) idle?.()
    })
    app.answer(req, res)
  }

  const certificate = https && openCertificate(https, config)
  // Loaded apart, because no other command needs it.
  const { openListener } = await import('./listen.ts')
  const { server, urls, keyPair } = await openListener({
    handler,
    at: config.listen,
    https: certificate?.source,
    configure(opened) {
      opened.headersTimeout = limits.headers_timeout
      opened.requestTimeout = limits.request_timeout
      opened.keepAliveTimeout = limits.keep_alive_timeout
      opened.maxRequestsPerSocket = 1_000
      opened.maxConnections = limits.connections
      // Options of createServer that Node keeps as properties of these names; the tests of connections hold them.
      Object.assign(opened, {
        connectionsCheckingInterval: Math.min(1_000, limits.headers_timeout),
        maxHeaderSize: 16_384,
        insecureHTTPParser: false,
        requireHostHeader: false,
        // What a client that does not read may hold of its answer, beside one piece that was read from the engine.
        highWaterMark: 16 << 10,
      })
      opened.on('clientError', answerClientError)
      if ('setSecureContext' in opened) handshakes = openHandshakes(opened, limits.headers_timeout)
    },
  })
  // From here on an error is a connection that could not be accepted: worth a line, no reason to stop.
  server.on('error', cause => log.warn('A connection was not accepted', {}, cause))
  if (keyPair) certificate?.opened(keyPair)

  return {
    /** The base address for this machine. */
    url: urls[0],
    /** All base addresses under which the server is reached, `url` first. */
    urls,
    /** The certificate that clients see, PEM; undefined for HTTP. */
    get certificate(): string | undefined {
      return certificate?.current
    },
    /** Reads the files of the certificate again and uses it for new connections. Throws what `openServer` would throw. */
    reloadCertificate(): void {
      const pair = certificate?.read()
      if (pair) (server as HttpsServer).setSecureContext(pair)
    },
    /** The owners are open: from now on requests are admitted. The store keeps the idempotency records only. */
    serve({
      store,
      ...opened
    }: Omit<Owners, 'access' | 'calls' | 'idempotency' | 'streamLimits'> & {
      store: Pick<Store, 'idempotency'>
    }): void {
      owners = {
        ...opened,
        access: openAccessWatch(opened),
        streamLimits: openStreamLimits(limits),
        calls,
        idempotency: openIdempotencyRecords({ store, steady: opened.steady, log }),
      }
      app = openApp(owners)
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
          for (const call of calls) interrupt(call, interrupted(), log)
        }, deadlineMs)
        const last = setTimeout(() => idle?.(), deadlineMs + 1_000)
        await new Promise<void>(resolve => (idle = resolve))
        clearTimeout(timer)
        clearTimeout(last)
      }
      await delay(acceptAfterDrainMs)
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      // Every answer of these last moments ends its connection, so what is still open after that is nobody's.
      await Promise.race([closed, delay(closeTimeoutMs, undefined, { ref: false })])
      handshakes?.closeAll()
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
