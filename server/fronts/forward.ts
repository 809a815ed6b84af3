import { Agent, type ClientRequest, type IncomingMessage, request, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { connectSocket } from '../../core/connect-patiently.ts'
import { Failure } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import { askForBody, discardRest } from '../http/body/unread-body.ts'
import { answerClientError } from '../http/connection/client-error.ts'
import { refuse } from '../http/request/errors.ts'
import { endToEnd, forwardedHeaders, type Tried } from './forwarded.ts'

/** Connections to the other process that stay open while no request uses them. */
const maxIdle = 256
/** How long the other process may take to accept a connection, milliseconds. */
const acceptMs = 30_000

/** Where another process of this server, or the server that has taken its place, takes requests. */
export interface ForwardTarget {
  /** The Unix socket on which it takes them, and the secret that proves them. */
  socketPath: string
  secret: string
}

const full = () =>
  new Failure('no_capacity', 'The server has more requests than it can accept. Send it again in 1 s.', {
    retryAfterMs: 1_000,
  })

const unreachable = () =>
  new Failure('shutting_down', 'The server is stopping and accepts no new requests. Send it again in 5 s.', {
    retryAfterMs: 5_000,
  })

const failureOf = (error: NodeJS.ErrnoException): Failure => (error.code === 'EAGAIN' ? full() : unreachable())

/** Connections to a Unix socket. Thousands that are opened at once do not all fit into its queue. */
function openAgent(path: string): Agent {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: maxIdle, scheduling: 'lifo' })
  agent.createConnection = (_, created) => {
    connectSocket({ path }, acceptMs).then(
      socket => created?.(null, socket),
      (failure: Error) => created?.(failure, undefined as never),
    )
    return undefined
  }
  return agent
}

/**
 * Opens what passes requests on to another process, each as its client sent it, over connections that are used again. Bodies
 * and answers are streams: a reader that is slow slows its sender, and a disconnect of either end reaches the other. `isLast`:
 * each answer closes the connection of its client.
 */
export function openForwarder({ socketPath, secret }: ForwardTarget, { isLast = false } = {}) {
  const agent = openAgent(socketPath)

  /** Begins a request to the other process; undefined, and the client is answered, if the request cannot be sent as it is. */
  function send(
    req: IncomingMessage,
    { more = [], engineEnd, refused }: { more?: readonly string[]; refused: () => void } & Tried,
  ): ClientRequest | undefined {
    const { method, url } = req
    const headers = [...forwardedHeaders(req, secret, engineEnd), ...more]
    try {
      return request({ agent, method, path: url, headers, maxHeaderSize: 64 << 10 })
    } catch {
      // A character that Node reads in a request and does not write.
      refused()
      return undefined
    }
  }

  /** The response, with which its connection ends if each answer is the last one. */
  function ended(res: ServerResponse): ServerResponse {
    if (isLast) res.shouldKeepAlive = false
    return res
  }

  return {
    /** Passes a request on, and its answer back. */
    forward(this: void, req: IncomingMessage, res: ServerResponse, { body, engineEnd }: Tried = {}): void {
      const refused = () => answerClientError(new Error('malformed'), req.socket)
      const upstream = send(req, { engineEnd, refused })
      if (!upstream) return
      let isAnswered = false
      upstream.on('response', answer => {
        isAnswered = true
        relay(answer, req, ended(res), upstream)
      })
      upstream.on('error', error => {
        // A body that could not be sent whole does not spoil the answer; one that ends early has an error of its own.
        if (isAnswered || res.headersSent || res.destroyed) return
        discardRest(req)
        refuse(ended(res), failureOf(error), newId('req'), undefined)
      })
      res.once('close', () => {
        if (!res.writableFinished) upstream.destroy()
      })
      if (body) upstream.end(body)
      else if (req.complete) req.pipe(upstream)
      else {
        // It may be refused before its body is sent.
        upstream.flushHeaders()
        if (req.headers.expect === undefined) req.pipe(upstream)
        upstream.once('continue', () => {
          askForBody(req)
          req.pipe(upstream)
        })
      }
      // A request whose client disconnects while it sends never ends.
      req.once('error', () => upstream.destroy())
    },

    /** Passes a request for a WebSocket on, and then everything that either end sends. */
    upgrade(this: void, req: IncomingMessage, socket: Duplex, head: Buffer): void {
      socket.on('error', () => socket.destroy())
      const upstream = send(req, {
        more: ['connection', 'upgrade'],
        refused: () => answerClientError(new Error('malformed'), socket),
      })
      if (!upstream) return
      socket.once('close', () => upstream.destroy())
      upstream.on('upgrade', (answer, other, first) => {
        other.on('error', () => other.destroy())
        other.once('close', () => socket.end())
        socket.once('close', () => other.destroy())
        socket.write(headText(answer))
        if (first.length > 0) socket.write(first)
        if (head.length > 0) other.write(head)
        other.pipe(socket)
        socket.pipe(other)
      })
      const refusal = () => {
        const res = new ServerResponse(req)
        res.shouldKeepAlive = false
        res.assignSocket(socket as never)
        res.once('finish', () => socket.end())
        return res
      }
      upstream.on('response', answer => relay(answer, req, refusal(), upstream))
      upstream.on('error', error => {
        if (!socket.destroyed && socket.writable) refuse(refusal(), failureOf(error), newId('req'), undefined)
      })
      upstream.end()
    },

    /** Closes the connections that no request uses. */
    close: () => agent.destroy(),
  }
}
export type Forwarder = ReturnType<typeof openForwarder>

/** Writes the answer of the other process to the client. */
function relay(answer: IncomingMessage, req: IncomingMessage, res: ServerResponse, upstream: ClientRequest): void {
  if (res.destroyed) return void upstream.destroy()
  if (answer.headers.connection === 'close') res.shouldKeepAlive = false
  res.writeHead(answer.statusCode!, answer.statusMessage, endToEnd(answer.rawHeaders))
  // A stream has its head before its first event.
  if (answer.headers['content-length'] === undefined) setImmediate(() => res.flushHeaders())
  answer.on('data', (bytes: Buffer) => {
    if (!res.write(bytes)) answer.pause()
  })
  res.on('drain', () => answer.resume())
  answer.once('end', () => {
    if (!req.complete) {
      req.unpipe(upstream)
      discardRest(req)
      req.resume()
      upstream.destroy()
    }
    res.end()
  })
  // The other process ends a stream that way whose client reads nothing, and when it is killed.
  answer.once('error', () => res.destroy())
}

/** Returns the head of an answer that turns the connection into a WebSocket. */
function headText({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`]
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}
