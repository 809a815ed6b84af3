import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Failure, invalid } from '../../core/failure.ts'
import { parseBoundedJson } from '../../core/json.ts'
import type { Log } from '../../core/log.ts'
import { filesType } from '../../core/tasks/protocols/generation-call.ts'
import { receiveCall } from './received-call.ts'
import { type EngineReply, eventStream, openEngineReply, type StreamForm, sendFailure, sendReply } from './reply.ts'

/**
 * `body` is the parsed JSON value, the FormData of a multipart form, or the ReceivedCall of a call with files, of which the
 * handler disposes.
 */
export type Handler = (body: unknown, reply: EngineReply, headers: IncomingHttpHeaders) => void | Promise<void>
/** By method and path: `POST /v1/embeddings`. */
export type Handlers = Record<string, Handler>

/** `running`: requests still being computed, including those of disconnected callers. */
export type EngineHealth = { status: 'loading'; progress: number } | { status: 'ok'; running?: number }

/** Where an engine listens: either a Unix socket with mode 0600, or a port on 127.0.0.1. */
export interface ListenAddress {
  socket?: string
  port?: number
}

export interface EngineSettings extends ListenAddress {
  /** The model id that it reports. */
  id: string
  /** If set, every request except /health needs it as bearer token. */
  key?: string
}

export interface HttpOptions extends Omit<EngineSettings, 'id'> {
  /** Maximum bytes of a request body. */
  bodyLimit?: number
  health: () => EngineHealth
  /** The routes; undefined until the model is ready. */
  handlers: () => Handlers | undefined
  stream?: StreamForm
  /** Where the files of calls that bring some are kept; absent: such calls are refused. */
  filesFolder?: string
  log: Log
}

/** The handler of `GET /v1/models` for the only model of an engine. */
export function listModel(id: string, owner: string): Handler {
  const model = { id, object: 'model', created: Math.floor(Date.now() / 1000), owned_by: owner }
  return (_body, reply) => reply.json({ object: 'list', data: [model] })
}

/** Linux limits the path of a Unix socket to 107 bytes plus a final zero byte. */
const longestSocketPath = 107

/** Throws Failure `invalid_value` for an address that cannot be listened on. */
export function checkListenAddress({ socket, port }: ListenAddress): void {
  if ((socket === undefined) === (port === undefined))
    throw invalid('socket', 'Give either --socket <path> or --port <number>.')
  // Node reads a number as a port, and without a slash it is a file of wherever the program was started.
  if (socket !== undefined && !socket.includes('/'))
    throw invalid('socket', `The socket '${socket}' must be a path with a slash, such as /run/engine.sock.`)
  if (socket !== undefined && Buffer.byteLength(socket) > longestSocketPath)
    throw invalid('socket', `The socket path '${socket}' is too long: use at most ${longestSocketPath} bytes.`)
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535))
    throw invalid('port', `--port must be a whole number from 0 to 65535, not ${port}.`)
}

const bounds = { depth: 64, keys: 200_000 }

/**
 * Starts the engine's HTTP server. `/health` works at once; all other routes once `handlers` returns them.
 * Throws Failure `invalid_value` if it cannot listen.
 */
export async function openHttp(options: HttpOptions) {
  const { socket, port, key, bodyLimit = 32 << 20, health, handlers, stream = eventStream, filesFolder, log } = options
  const running = new Set<AbortController>()
  let stopping = false
  const expected = key === undefined ? undefined : digest(`Bearer ${key}`)

  /** Returns the handler of a request. Throws Failure for a wrong key, an unknown route or a model that still loads. */
  function handlerFor(request: IncomingMessage, response: ServerResponse): Handler {
    if (expected && !timingSafeEqual(expected, digest(request.headers.authorization ?? '')))
      throw new Failure('invalid_api_key', 'The engine key is missing or wrong: send it as bearer token.')
    const ready = handlers()
    if (!ready)
      throw new Failure('model_warming_up', 'The model is still loading. GET /health shows the progress.', {
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

  async function bodyOf(request: IncomingMessage, signal: AbortSignal): Promise<unknown> {
    if (filesFolder !== undefined && request.headers['content-type'] === filesType)
      return await receiveCall(request, filesFolder, signal)
    const bytes = await readBody(request, bodyLimit, signal)
    return request.method === 'GET' ? undefined : await parsedBody(request, bytes)
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const controller = new AbortController()
    running.add(controller)
    response.once('close', () => {
      running.delete(controller)
      if (!response.writableFinished) controller.abort(new Failure('cancelled', 'The client disconnected.'))
    })
    response.once('finish', () => {
      if (stopping) request.socket.end()
    })
    const reply = openEngineReply(response, controller.signal, stream)
    try {
      if (request.method === 'GET' && request.url === '/health') {
        const now = health()
        return sendReply(response, now.status === 'ok' ? 200 : 503, now)
      }
      const handler = handlerFor(request, response)
      await handler(await bodyOf(request, reply.signal), reply, request.headers)
    } catch (error) {
      const failure = Failure.from(error)
      if (failure.code === 'internal_error') log.error('A request failed', { path: request.url }, error)
      reply.flush()
      sendFailure(response, failure, reply.form)
    }
  }

  const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => void answer(request, response))
  await listen(server, socket, port)

  return {
    /** The path of the socket, or the URL with the actual port, also if port 0 was requested. */
    address: socket ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Aborts running requests with Failure `shutting_down`; resolves when the last response has been sent. */
    async close(): Promise<void> {
      const closed = once(server, 'close')
      stopping = true
      server.close()
      for (const controller of running)
        controller.abort(new Failure('shutting_down', 'The engine is stopping.', { retryAfterMs: 1000 }))
      // Give clients one second to receive the final frames.
      const closeTimer = setTimeout(() => server.closeAllConnections(), 1000)
      await closed
      clearTimeout(closeTimer)
    },
  }
}

async function parsedBody({ headers }: IncomingMessage, bytes: Buffer<ArrayBuffer>): Promise<unknown> {
  const type = headers['content-type'] ?? ''
  if (!/^multipart\/form-data\b/i.test(type)) return parseBoundedJson(bytes, bounds)
  const form = new Response(bytes, { headers: { 'content-type': type } }).formData()
  return form.catch((cause: unknown) => {
    throw new Failure('invalid_value', 'The body is not a valid form.', { cause })
  })
}

const digest = (text: string) => createHash('sha256').update(text).digest()

async function listen(server: ReturnType<typeof createServer>, socket: string | undefined, port: number | undefined) {
  if (socket !== undefined && lstatSync(socket, { throwIfNoEntry: false })?.isSocket()) unlinkSync(socket)
  const listening = once(server, 'listening')
  if (socket === undefined) server.listen(port, '127.0.0.1')
  else {
    // Set the umask first: with a later chmod, other users could connect in between.
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

/** Reads the whole body. Bytes over the limit are read and dropped, so that the caller receives the error. */
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
    throw new Failure('cancelled', 'The request body ended early.', { cause: error })
  }
  if (length > limit)
    throw new Failure('payload_too_large', `The request body has ${length} bytes; at most ${limit} are allowed.`)
  return Buffer.concat(chunks)
}

/**
 * Aborts on SIGTERM or SIGINT. Does not use `once`: the library signal-exit ends the process if its listener is the
 * only one.
 */
export function openStopSignal(): Disposable & { signal: AbortSignal; stopped: Promise<void> } {
  const stop = new AbortController()
  const onSignal = () => stop.abort()
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  return {
    signal: stop.signal,
    stopped: new Promise(resolve => stop.signal.addEventListener('abort', () => resolve(), { once: true })),
    [Symbol.dispose]() {
      process.off('SIGTERM', onSignal)
      process.off('SIGINT', onSignal)
    },
  }
}
