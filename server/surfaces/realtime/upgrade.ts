import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** The subprotocols that OpenAI's clients send in browsers, which cannot set headers. */
const protocol = 'realtime'
const tokenPrefix = 'openai-insecure-api-key.'

const realtime = /^\/(?:std\/(?:openai\/)?)?v1\/realtime\/?(?:\?|$)/

/** Whether a request asks for a WebSocket where there is one. All other requests to upgrade are answered as usual. */
export const asksForWebSocket = ({ method, url = '', headers }: IncomingMessage): boolean =>
  method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && realtime.test(url)

/** The connections of requests that may be upgraded, until they are. */
const sockets = new WeakMap<IncomingMessage, { socket: Duplex; head: Buffer }>()

/**
 * Returns the response of a request to upgrade, so that it is checked, and refused, like every other request. The token
 * of a browser is moved from the subprotocols to the header in which all tokens are.
 */
export function responseOf(req: IncomingMessage, socket: Duplex, head: Buffer): ServerResponse {
  const { headers } = req
  const token = protocolsOf(req).find(one => one.startsWith(tokenPrefix))
  if (headers.authorization === undefined && token !== undefined)
    headers.authorization = `Bearer ${token.slice(tokenPrefix.length)}`
  sockets.set(req, { socket, head })
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(socket as never)
  res.once('finish', () => socket.end())
  socket.on('error', () => socket.destroy())
  socket.once('close', () => res.emit('close'))
  return res
}

const protocolsOf = ({ headers }: IncomingMessage) =>
  (headers['sec-websocket-protocol'] ?? '').split(',').map(one => one.trim())

/** Returns the subprotocol to answer with: never the one with the token. */
export const chosenProtocol = (offered: ReadonlySet<string>): string | false =>
  offered.has(protocol) ? protocol : false

/** Takes the connection of a request out of its response; undefined if it does not ask for a WebSocket. */
export function takeSocket(req: IncomingMessage, res: ServerResponse): { socket: Duplex; head: Buffer } | undefined {
  const taken = sockets.get(req)
  if (!taken) return undefined
  sockets.delete(req)
  res.detachSocket(taken.socket as never)
  return taken
}
