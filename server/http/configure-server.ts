import type { Server as HttpServer, IncomingMessage, RequestListener } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import type { Limits } from '../../core/config.ts'
import { deferContinue } from './body/unread-body.ts'
import { answerClientError } from './connection/client-error.ts'
import { type Handshakes, openHandshakes } from './connection/handshakes.ts'

export interface ServerSettings {
  limits: Pick<Limits, 'headers_timeout' | 'request_timeout' | 'keep_alive_timeout'>
  /** How many connections may be open. */
  connections: number
  /** Called for every request that waits for `100 Continue`. */
  handler: RequestListener
  /** Whether a request asks for a WebSocket where there is one. */
  asksForWebSocket: (req: IncomingMessage) => boolean
  /** Answers such a request. */
  upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void
}

/**
 * Sets the limits and handlers of a server that clients reach, before it listens. Returns the watch over its TLS
 * handshakes; undefined without TLS.
 */
export function configureServer(
  opened: HttpServer | HttpsServer,
  { limits, connections, handler, asksForWebSocket, upgrade }: ServerSettings,
): Handshakes | undefined {
  opened.headersTimeout = limits.headers_timeout
  opened.requestTimeout = limits.request_timeout
  opened.keepAliveTimeout = limits.keep_alive_timeout
  opened.maxRequestsPerSocket = 1_000
  opened.maxConnections = connections
  // Options of createServer, which Node stores as properties with these names; the connection tests check them.
  Object.assign(opened, {
    connectionsCheckingInterval: Math.min(1_000, limits.headers_timeout),
    maxHeaderSize: 16_384,
    insecureHTTPParser: false,
    requireHostHeader: false,
    // Bytes buffered for a client that does not read, besides one piece that was read from the engine.
    highWaterMark: 16 << 10,
    shouldUpgradeCallback: asksForWebSocket,
  })
  opened.on('upgrade', upgrade)
  opened.on('checkContinue', (req, res) => {
    deferContinue(req, res)
    handler(req, res)
  })
  opened.on('clientError', answerClientError)
  return 'setSecureContext' in opened ? openHandshakes(opened, limits.headers_timeout) : undefined
}
