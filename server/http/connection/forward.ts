import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'

/** Names the address of the client and whether its connection is encrypted. Read only on connections of `adopt`. */
const clientHeader = 'x-infer-client'

const clientOf = ({ socket }: IncomingMessage): string =>
  `${(socket as Partial<TLSSocket>).encrypted ? 'https' : 'http'} ${socket.remoteAddress ?? ''}`

/** Headers of one connection, which are not those of the next. */
const ofConnection = new Set(['connection', 'keep-alive', 'expect', clientHeader])

/** Returns the headers of a message, as [name, value, …], without those of its connection. */
function passedOn(raw: readonly string[], more: readonly string[]): string[] {
  const headers = [...more]
  for (let at = 0; at < raw.length; at += 2)
    if (!ofConnection.has(raw[at]!.toLowerCase())) headers.push(raw[at]!, raw[at + 1]!)
  return headers
}

/**
 * Lets the server at a Unix socket answer a request, and closes the connection of the client with the answer. Calls
 * `failed` if that server has not answered, and `discardRest` if it refused the body; the answer ends early if that server
 * ends during it.
 */
export function forward(
  req: IncomingMessage,
  res: ServerResponse,
  socketPath: string,
  { failed, discardRest }: { failed: () => void; discardRest: (req: IncomingMessage) => void },
): void {
  const upstream = request({
    socketPath,
    method: req.method,
    path: req.url,
    headers: passedOn(req.rawHeaders, [clientHeader, clientOf(req), 'connection', 'close']),
    setHost: false,
    agent: false,
  })
  let answered = false
  upstream.on('response', answer => {
    answered = true
    res.shouldKeepAlive = false
    res.writeHead(answer.statusCode!, answer.statusMessage, passedOn(answer.rawHeaders, ['connection', 'close']))
    // The head of an event stream must not wait for its first event.
    res.flushHeaders()
    answer.once('end', () => {
      if (req.complete) return
      // It refused the request before its body was sent.
      req.unpipe(upstream)
      discardRest(req)
      req.resume()
      upstream.destroy()
    })
    answer.pipe(res)
    answer.once('error', () => res.destroy())
  })
  // A body that could not be sent whole does not spoil the answer; one that ends early has an error of its own.
  upstream.on('error', () => !answered && failed())
  res.once('close', () => upstream.destroy())
  if (req.headers.expect !== undefined) res.writeContinue()
  req.pipe(upstream)
}

/** The same for a request to upgrade its connection. */
export function forwardUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer, socketPath: string): void {
  const upstream = connect(socketPath)
  const lines = [`${req.method} ${req.url} HTTP/1.1`, `${clientHeader}: ${clientOf(req)}`]
  for (let at = 0; at < req.rawHeaders.length; at += 2)
    if (req.rawHeaders[at]!.toLowerCase() !== clientHeader)
      lines.push(`${req.rawHeaders[at]}: ${req.rawHeaders[at + 1]}`)
  upstream.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  upstream.write(head)
  upstream.pipe(socket).pipe(upstream)
  const end = () => void [socket, upstream].map(one => one.destroy())
  for (const one of [socket, upstream]) one.on('error', end).once('close', end)
}

/** Connections from the server before this one. */
const adopted = new WeakSet<Socket>()

/** Marks a connection over which another server of this data directory forwards requests. */
export const adopt = (socket: Socket): void => void adopted.add(socket)

/** Gives a forwarded request the address of its client. Leaves every other request as it is. */
export function readClient({ socket, headers }: IncomingMessage): void {
  if (!adopted.has(socket)) return
  const [scheme, address = ''] = String(headers[clientHeader] ?? '').split(' ')
  delete headers[clientHeader]
  Object.defineProperties(socket, {
    remoteAddress: { value: address, configurable: true },
    encrypted: { value: scheme === 'https', configurable: true },
  })
}
