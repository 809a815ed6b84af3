import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { Endpoint } from '../launcher/launcher.ts'
import { connectEngine } from './connect-engine.ts'
import { type AnswerListener, HttpAnswer, MalformedAnswer } from './http-answer.ts'
import { type BodyPieces, ConnectionError, type HttpRequest, writePieces, writeRequest } from './http-request.ts'

/** Callbacks of one request: `head`, any number of `data`, then `ended`; or at any point `failed`, after which nothing follows. */
export interface ExchangeListener extends AnswerListener {
  ended(): void
  failed(error: NodeJS.ErrnoException): void
}

export interface EngineConnectionOptions {
  endpoint: Pick<Endpoint, 'origin' | 'socketPath' | 'tls'>
  /** How long the other side may take to accept it, milliseconds. */
  connectMs: number
  /** How long it stays open without a request, milliseconds, unless the other side says that it closes earlier. */
  keepAliveMs: number
}

/** The other side may close it so much earlier than it says, milliseconds. */
const keepAliveMarginMs = 1_000

/**
 * A connection to an engine by HTTP/1.1, for one request after the other. It connects with the first request, and again after
 * it was closed. On the hot path: between the socket and the listener there is no stream, no promise and no timer of a request.
 */
export class EngineConnection {
  readonly #options: EngineConnectionOptions
  readonly #host: string
  /** While it is connected its socket, else why it has none. */
  #socket: Socket | 'closed' | 'connecting' | 'destroyed' = 'closed'
  /** The TLS session of the last socket, which the next one takes up. */
  #session: Buffer | undefined
  #request: HttpRequest | undefined
  #listener: ExchangeListener | undefined
  #answer = this.#newAnswer()
  /** Whether a part of the body is still to be sent. */
  #isSending = false
  #isPaused = false
  #progressAt = 0
  #progressTimer: NodeJS.Timeout | undefined
  /** When it fires. */
  #progressDue = 0
  #idleTimer: NodeJS.Timeout | undefined
  #idleMs: number
  /** The `keep-alive` header that `#idleMs` follows. */
  #keepAlive: string | undefined

  constructor(options: EngineConnectionOptions) {
    this.#options = options
    this.#host = new URL(options.endpoint.origin).host
    this.#idleMs = options.keepAliveMs
  }

  /** When either side last sent something for a request, on the monotonic clock. */
  get progressAt(): number {
    return this.#progressAt
  }

  /** Sends a request; the one before must have ended. The listener is called later, never before this returns. */
  send(request: HttpRequest, listener: ExchangeListener): void {
    if (this.#listener) throw new Error('A request is sent on a connection that has one.')
    this.#request = request
    this.#listener = listener
    this.#answer.begin()
    if (typeof this.#socket !== 'string') this.#write(this.#socket, request)
    else if (this.#socket === 'closed') void this.#connect()
    else if (this.#socket === 'destroyed') queueMicrotask(() => this.#fail(request, closedError()))
  }

  /** Stops reading the answer until `resume`. What was read already still arrives. */
  pause(listener: ExchangeListener): void {
    if (listener !== this.#listener) return
    this.#isPaused = true
    if (typeof this.#socket !== 'string') this.#socket.pause()
  }

  resume(listener: ExchangeListener): void {
    if (listener === this.#listener) this.#resume()
  }

  #resume(): void {
    this.#isPaused = false
    this.#progressAt = performance.now()
    if (typeof this.#socket !== 'string') this.#socket.resume()
  }

  /** Ends the request of this listener, if it has not ended; it gets nothing more. */
  abort(listener: ExchangeListener): void {
    if (listener !== this.#listener) return
    this.#leave()
    // One that connects may serve the next request.
    if (typeof this.#socket !== 'string') this.#close()
  }

  /** Closes it for good. A running request fails with this error. */
  destroy(error: Error = closedError()): void {
    const request = this.#request
    this.#close()
    this.#socket = 'destroyed'
    clearTimeout(this.#idleTimer)
    clearTimeout(this.#progressTimer)
    if (request) this.#fail(request, error)
  }

  #newAnswer(): HttpAnswer {
    return new HttpAnswer({
      head: (status, headers) => this.#listener!.head(status, headers),
      data: bytes => this.#listener!.data(bytes),
    })
  }

  async #connect(): Promise<void> {
    this.#socket = 'connecting'
    const { endpoint, connectMs } = this.#options
    const read = (bytes: Buffer) => this.#read(bytes)
    try {
      this.#connected(await connectEngine(endpoint, { connectMs, session: this.#session, read }))
    } catch (thrown) {
      if (this.#socket === 'connecting') this.#socket = 'closed'
      if (this.#request) this.#fail(this.#request, thrown as Error)
    }
  }

  #connected(socket: Socket): void {
    if (this.#socket !== 'connecting') return void socket.destroy()
    this.#socket = socket
    let error: Error | undefined
    socket
      .on('session', session => void (this.#session = session))
      .once('error', thrown => void (error = thrown))
      // Nothing follows, whatever it would still take.
      .once('end', () => socket.destroy())
      .once('close', () => socket === this.#socket && this.#closed(error))
    if (this.#request) this.#write(socket, this.#request)
    else this.#rest()
  }

  #closed(error: Error | undefined): void {
    this.#socket = 'closed'
    const request = this.#request
    if (!request) return
    if (!error && this.#answer.endsWithConnection) this.#end()
    else this.#fail(request, error ?? closedError())
  }

  /** Closes the socket without a word to a listener. */
  #close(): void {
    const socket = this.#socket
    this.#socket = 'closed'
    if (typeof socket !== 'string') socket.destroy()
  }

  #write(socket: Socket, request: HttpRequest): void {
    this.#progressAt = performance.now()
    this.#watchProgress(request.timeoutMs)
    try {
      writeRequest(socket, request, this.#host)
    } catch (thrown) {
      return queueMicrotask(() => this.#fail(request, thrown as Error))
    }
    const { body } = request
    if (isInPieces(body)) void this.#sendPieces(socket, request, body)
    // Free it: a stream may take minutes.
    else request.body = null
  }

  async #sendPieces(socket: Socket, request: HttpRequest, pieces: BodyPieces): Promise<void> {
    this.#isSending = true
    const isWanted = () => {
      this.#progressAt = performance.now()
      return request === this.#request
    }
    try {
      await writePieces(socket, pieces, request.bodyBytes!, isWanted)
      if (request === this.#request) this.#isSending = false
    } catch (thrown) {
      if (request !== this.#request) return
      this.#close()
      this.#fail(request, thrown as Error)
    }
  }

  #read(bytes: Buffer): boolean {
    const request = this.#request
    if (!request) {
      // Bytes that belong to no request: nobody could tell what the next answer is.
      this.#close()
      return true
    }
    this.#progressAt = performance.now()
    const answer = this.#answer
    try {
      const used = answer.read(bytes)
      if (request !== this.#request) return true
      if (answer.isComplete) {
        if (used < bytes.length) answer.stop()
        this.#end()
      }
    } catch (thrown) {
      if (!(thrown instanceof MalformedAnswer)) throw thrown
      this.#close()
      this.#fail(request, new ConnectionError('MALFORMED', thrown.message, { cause: thrown }))
    }
    return !this.#isPaused
  }

  #end(): void {
    const listener = this.#listener!
    const mayStay = this.#answer.keepsAlive && !this.#isSending
    this.#leave()
    if (!mayStay) this.#close()
    else this.#rest()
    listener.ended()
  }

  #fail(request: HttpRequest, error: Error): void {
    const listener = this.#listener
    if (!listener || request !== this.#request) return
    this.#leave()
    listener.failed(error)
  }

  /** The request has ended. */
  #leave(): void {
    const body = this.#request?.body
    this.#request = undefined
    this.#listener = undefined
    if (this.#isSending && body instanceof Readable) body.destroy()
    this.#isSending = false
    if (!this.#answer.isComplete) {
      // Whatever of it is being read ends there, and not in the next answer.
      this.#answer.stop()
      this.#answer = this.#newAnswer()
    }
    if (this.#isPaused) this.#resume()
  }

  /** Waits for the next request. */
  #rest(): void {
    const { keepAlive } = this.#answer
    if (keepAlive !== this.#keepAlive) {
      this.#keepAlive = keepAlive
      const said = /(?:^|,)\s*timeout=(\d{1,6})/.exec(keepAlive ?? '')?.[1]
      const { keepAliveMs } = this.#options
      this.#idleMs = said === undefined ? keepAliveMs : Math.min(keepAliveMs, Number(said) * 1000 - keepAliveMarginMs)
      clearTimeout(this.#idleTimer)
      this.#idleTimer = undefined
    }
    if (this.#idleMs <= 0) this.#close()
    else if (this.#idleTimer) this.#idleTimer.refresh()
    else this.#idleTimer = setTimeout(() => !this.#listener && this.#close(), this.#idleMs).unref()
  }

  /** Ends the request when neither side has sent anything for this long. One timer lasts for many requests. */
  #watchProgress(timeoutMs: number): void {
    const due = this.#progressAt + timeoutMs
    if (this.#progressTimer && this.#progressDue <= due) return
    clearTimeout(this.#progressTimer)
    this.#progressDue = due
    this.#progressTimer = setTimeout(() => this.#checkProgress(), due - performance.now()).unref()
  }

  #checkProgress(): void {
    this.#progressTimer = undefined
    const request = this.#request
    if (!request || typeof this.#socket === 'string') return
    const now = performance.now()
    // A client that reads nothing does not make the engine slow.
    if (this.#isPaused) this.#progressAt = now
    if (now < this.#progressAt + request.timeoutMs) return this.#watchProgress(request.timeoutMs)
    this.#close()
    this.#fail(request, new ConnectionError('TIMEOUT', `Neither side sent anything for ${request.timeoutMs} ms.`))
  }
}

const isInPieces = (body: HttpRequest['body']): body is BodyPieces =>
  body !== null && typeof body !== 'string' && !(body instanceof Uint8Array)

const closedError = () => new ConnectionError('CLOSED', 'The connection was closed before the answer was complete.')
