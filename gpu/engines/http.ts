import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Failure } from '../../core/failure.ts'
import { parseJson } from '../../core/json.ts'
import type { Log } from '../../core/log.ts'
import { eventStream, openReply, type Reply, type StreamForm, send, sendFailure } from './reply.ts'

/** A body that is a form, as it came. */
export class FormBody {
  readonly bytes: Buffer<ArrayBuffer>
  readonly contentType: string
  constructor(bytes: Buffer<ArrayBuffer>, contentType: string) {
    this.bytes = bytes
    this.contentType = contentType
  }
}

/** `body` is JSON's value, or a form. */
export type Handler = (body: unknown, reply: Reply) => void | Promise<void>
/** By method and path: `POST /v1/embeddings`. */
export type Handlers = Record<string, Handler>

/** `running`: requests that it still works on, those included whose callers have gone. */
export type Health = { status: 'loading'; progress: number } | { status: 'ok'; running?: number }

/** Where an engine listens: a Unix socket that only this user may open, or a port on 127.0.0.1. One of the two. */
export interface ListenAddress {
  socket?: string
  port?: number
}

export interface HttpOptions extends ListenAddress {
  key?: string
  /** Bytes of a request body. */
  bodyLimit?: number
  health: () => Health
  /** What is served; undefined until the model is ready. */
  handlers: () => Handlers | undefined
  /** In what its handlers stream. */
  stream?: StreamForm
  log: Log
}

/** The longest path that fits into the address of a Unix socket on Linux, without its closing zero. */
const longestSocketPath = 107

/** Throws Failure `invalid_value` for a place where nothing can listen, before anything is started. */
export function checkListenAddress({ socket, port }: ListenAddress): void {
  const wrong = (param: string, message: string) => new Failure('invalid_value', message, { param })
  if ((socket === undefined) === (port === undefined))
    throw wrong('socket', 'Say where to listen: --socket <path> or --port <number>, one of them.')
  if (socket !== undefined && Buffer.byteLength(socket) > longestSocketPath)
    throw wrong('socket', `The path of a socket has at most ${longestSocketPath} bytes; '${socket}' has more.`)
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535))
    throw wrong('port', `--port must be a whole number from 0 to 65535, not ${port}.`)
}

const bounds = { depth: 64, keys: 200_000 }

/**
 * The engine's door. /health answers from the
 * first moment, everything else once there are handlers. Throws Failure `invalid_value` when it cannot listen.
 */
export async function openHttp(options: HttpOptions) {
  const { socket, port, key, bodyLimit = 32 << 20, health, handlers, stream = eventStream, log } = options
  const running = new Set<AbortController>()
  let stopping = false
  const wanted = key === undefined ? undefined : digest(`Bearer ${key}`)

  /** Throws Failure for whoever may not come in or asks for what is not there. */
  function handlerFor(request: IncomingMessage, response: ServerResponse): Handler {
    if (wanted && !timingSafeEqual(wanted, digest(request.headers.authorization ?? '')))
      throw new Failure('invalid_api_key', 'This engine needs its key as bearer token.')
    const ready = handlers()
    if (!ready)
      throw new Failure('model_warming_up', 'The model is still loading. Ask /health how far it is.', {
        retryAfterMs: 1000,
      })
    const path = (request.url ?? '/').split('?', 1)[0]!
    const handler = Object.hasOwn(ready, `${request.method} ${path}`) ? ready[`${request.method} ${path}`] : undefined
    if (handler) return handler
    const [allowed, known] =
      Object.keys(ready)
        .find(route => route.endsWith(` ${path}`))
        ?.split(' ') ?? []
    if (!allowed) throw new Failure('unknown_url', `Invalid URL (${request.method} ${path}).`)
    response.setHeader('allow', allowed)
    throw new Failure('method_not_allowed', `${known} takes ${allowed}, not ${request.method}.`)
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const controller = new AbortController()
    running.add(controller)
    response.once('close', () => {
      running.delete(controller)
      if (!response.writableFinished) controller.abort(new Failure('cancelled', 'The caller has gone.'))
    })
    response.once('finish', () => {
      if (stopping) request.socket.end()
    })
    const reply = openReply(response, controller.signal, stream)
    try {
      if (request.method === 'GET' && request.url === '/health') {
        const now = health()
        return send(response, now.status === 'ok' ? 200 : 503, now)
      }
      const handler = handlerFor(request, response)
      const bytes = await readBody(request, bodyLimit, reply.signal)
      await handler(request.method === 'GET' ? undefined : bodyOf(request, bytes), reply)
    } catch (error) {
      const failure = Failure.from(error)
      if (failure.code === 'internal_error') log.error('A request failed', { path: request.url }, error)
      reply.flush()
      sendFailure(response, failure, stream)
    }
  }

  const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => void answer(request, response))
  await listen(server, socket, port)

  return {
    /** The port that was given, where it was asked for as 0. */
    port: socket === undefined ? (server.address() as AddressInfo).port : undefined,
    /** Ends what runs with Failure `shutting_down` and resolves when the last answer is out. */
    async close(): Promise<void> {
      const closed = once(server, 'close')
      stopping = true
      server.close()
      for (const controller of running)
        controller.abort(new Failure('shutting_down', 'The engine is stopping.', { retryAfterMs: 1000 }))
      // Answers that were cut short are on their way to the kernel; whoever does not take them is not waited for.
      const cut = setTimeout(() => server.closeAllConnections(), 1000)
      await closed
      clearTimeout(cut)
    },
  }
}

function bodyOf({ headers }: IncomingMessage, bytes: Buffer<ArrayBuffer>): unknown {
  const type = headers['content-type'] ?? ''
  return /^multipart\/form-data\b/i.test(type) ? new FormBody(bytes, type) : parseJson(bytes, bounds)
}

const digest = (text: string) => createHash('sha256').update(text).digest()

async function listen(server: ReturnType<typeof createServer>, socket: string | undefined, port: number | undefined) {
  if (socket !== undefined && lstatSync(socket, { throwIfNoEntry: false })?.isSocket()) unlinkSync(socket)
  const listening = once(server, 'listening')
  if (socket === undefined) server.listen(port, '127.0.0.1')
  else {
    // A socket is made with what the mask leaves; changing its mode afterwards would leave a moment in between.
    const mask = process.umask(0o177)
    try {
      server.listen(socket)
    } finally {
      process.umask(mask)
    }
  }
  try {
    await listening
  } catch (cause) {
    const where = socket ?? `port ${port}`
    throw new Failure('invalid_value', `The engine cannot listen on ${where}: ${(cause as Error).message}.`, { cause })
  }
  if (socket !== undefined) chmodSync(socket, 0o600)
}

/** The whole body. What is over the limit is read and dropped, so that the caller gets to hear the refusal. */
async function readBody(request: IncomingMessage, limit: number, signal: AbortSignal): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length <= limit) chunks.push(chunk)
      else chunks.length = 0
    }
  } catch (error) {
    signal.throwIfAborted()
    throw new Failure('cancelled', 'The body of the request ended too early.', { cause: error })
  }
  if (length > limit)
    throw new Failure('payload_too_large', `The body has ${length} bytes; at most ${limit} are taken.`)
  return Buffer.concat(chunks)
}
