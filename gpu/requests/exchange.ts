import { Failure } from '../../core/failure.ts'
import { ignoredHeader } from '../../core/ignored.ts'
import type { EngineCall, EngineExchange, EngineListener, StreamedBody } from '../../core/models/engine-call.ts'
import type { SwapSetMember } from '../../core/swap-set.ts'
import { untrustedCertificate } from '../../core/untrusted-certificate.ts'
import { isRefusal } from '../launcher/reach.ts'
import { type Address, maxTries } from './addresses.ts'
import { withMembers } from './body-members.ts'
import type { Connection, EngineConnections } from './connections.ts'
import type { ExchangeListener } from './engine-connection.ts'
import { fitAnswer } from './fit-answer.ts'
import type { AnswerHeaders } from './http-answer.ts'
import { type HttpRequest, headerLines } from './http-request.ts'
import { pauseRequested, requestedPauseMs } from './pause.ts'

/** Bytes of an engine's error answer that are read; the rest is dropped. */
const maxRefusalBytes = 64 << 10

/** Returns the headers with another content type, for a body that is not JSON. */
const withContentType = (headers: readonly string[], contentType: string): string[] =>
  headers.map((text, at) => (at % 2 === 1 && headers[at - 1] === 'content-type' ? contentType : text))

/** A larger body is written in pieces: the connection would keep a whole one in memory until the other side has it. */
const pieceBytes = 1 << 20
/** Whether a body is sent without a copy of it. */
export const isInPieces = (body: Uint8Array): boolean => body.length > pieceBytes

function* piecesOf(body: Uint8Array, members: string | undefined): Generator<Uint8Array> {
  if (members !== undefined) yield Buffer.from(`{${members},`)
  for (let at = members === undefined ? 0 : 1; at < body.length; at += pieceBytes)
    yield body.subarray(at, at + pieceBytes)
}

const isStreamed = (body: EngineCall['body']): body is StreamedBody =>
  typeof body !== 'string' && !(body instanceof Uint8Array)

/** Error codes of an established connection that was closed. */
const connectionClosed: ReadonlySet<string> = new Set(['CLOSED', 'ECONNRESET', 'EPIPE'])
/** Those of a socket that is not there: that of an engine elsewhere while its way there is made again. */
const socketMissing: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT'])

function describe(error: Error & { code?: string }, requesting: boolean): string {
  if (error.code === 'MALFORMED') return 'did not answer in HTTP'
  if (!requesting) return 'broke off its answer'
  return connectionClosed.has(error.code ?? '') ? 'closed the connection without an answer' : 'cannot be reached'
}

export interface ExchangeOptions {
  /** Headers of this request besides those of all, names and values alternating. */
  headers?: readonly string[]
  /** Returns a connection to an address of the engine that is none of these; undefined without one. Absent: it has one. */
  elsewhere?: ((tried: ReadonlySet<Address>) => Connection | undefined) | undefined
}

/**
 * One request to an engine: where it is sent, again and elsewhere, and what becomes of its answer. On the hot path. It ends exactly
 * once: finished, failed, or aborted.
 */
export class HttpExchange implements EngineExchange, SwapSetMember, ExchangeListener {
  /** Its index in `EngineConnections.open`. */
  setIndex = -1
  #connections: EngineConnections
  #connection: Connection
  #call: EngineCall
  #listener: EngineListener
  /** Called when it ends; true when the engine answered the request completely. */
  #onEnd: (succeeded: boolean) => void
  #options: ExchangeOptions
  /** Addresses at which it has failed. */
  #tried: Set<Address> | undefined
  #phase: 'requesting' | 'relaying' | 'refused' | 'ended' = 'requesting'
  #status = 0
  #refusalHeaders: AnswerHeaders = {}
  #received = 0
  /** Whether the engine has sent a part of its result: an event of a stream, or the whole answer. */
  began = false
  #refusal: Buffer[] = []
  #paused = false
  /** Whether the engine may have got a part of it. */
  #mayBeSent = false
  /** Whether it was sent again after the engine had closed the connection. */
  #resent = false
  /** Whether it was sent again with a smaller token limit. */
  #fitted = false

  constructor(
    connections: EngineConnections,
    connection: Connection,
    call: EngineCall,
    listener: EngineListener,
    onEnd: (succeeded: boolean) => void,
    options: ExchangeOptions = {},
  ) {
    this.#connections = connections
    this.#connection = connection
    this.#call = call
    this.#listener = listener
    this.#onEnd = onEnd
    this.#options = options
  }

  start(): void {
    const { engineFailure, open } = this.#connections
    open.add(this)
    // In a microtask, so that the caller holds the exchange before its listener is called.
    if (engineFailure) queueMicrotask(() => this.terminate(engineFailure()))
    else this.#send()
  }

  #send(): void {
    const { method = 'POST', path, body: given, members } = this.#call
    let headers: string
    try {
      headers = this.#headerLines()
    } catch (thrown) {
      return queueMicrotask(() => this.failed(thrown as Error))
    }
    const request: HttpRequest = { method, path, headers, body: null, bodyBytes: undefined, timeoutMs: this.#timeoutMs }
    if (method !== 'POST') return this.#connection.client.send(request, this)
    if (isStreamed(given)) {
      request.body = given.open()
      request.bodyBytes = given.bytes
    } else if (given instanceof Uint8Array && isInPieces(given)) {
      request.body = piecesOf(given, members)
      // The members take the place of the opening brace, and have one themselves and a comma.
      request.bodyBytes = given.length + (members === undefined ? 0 : Buffer.byteLength(members) + 1)
    } else request.body = members === undefined ? given : withMembers(given, members)
    this.#connection.client.send(request, this)
  }

  #headerLines(): string {
    const { contentType } = this.#call
    const { headers: own } = this.#options
    const all =
      contentType === undefined
        ? this.#connections.headerLines
        : headerLines(withContentType(this.#connections.options.headers, contentType))
    return own === undefined || own.length === 0 ? all : all + headerLines(own)
  }

  get #timeoutMs(): number {
    return this.#connections.options.noProgressMs + (this.#call.patienceMs ?? 0)
  }

  pause(): void {
    this.#paused = true
    // An error answer is read here, so a paused client must not delay it.
    if (this.#phase === 'relaying') this.#connection.client.pause(this)
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#connection.client.resume(this)
  }

  abort(): void {
    if (this.#phase === 'ended') return
    this.#disconnect()
    this.#end(false)
  }

  /** Ends the request with this failure, because the engine has ended. */
  terminate(failure: Failure): void {
    if (this.#phase === 'ended') return
    this.#disconnect()
    this.#fail(failure)
  }

  head(status: number, headers: AnswerHeaders): void {
    this.#connections.lastProgressAt = this.#connection.client.progressAt
    if (status >= 300) {
      this.#phase = 'refused'
      this.#status = status
      this.#refusalHeaders = headers
      return
    }
    this.#phase = 'relaying'
    if (this.#paused) this.#connection.client.pause(this)
    this.#connections.options.accepted()
    this.#connections.addresses.succeeded(this.#connection.address)
    // Free the body: it is not sent again, and a stream may take minutes.
    if (this.#call.stream) this.#call = { ...this.#call, body: '' }
    this.#notify(() => this.#listener.accepted(headers['content-type'] ?? '', headers[ignoredHeader]))
  }

  data(chunk: Buffer): void {
    this.#connections.lastProgressAt = this.#connection.client.progressAt
    if (this.#received === 0 && this.#call.stream) this.began = chunk.includes('data: {')
    this.#received += chunk.length
    if (this.#phase === 'relaying') {
      if (!this.#call.stream && this.#received > this.#call.maxBytes) return this.#tooLong()
      try {
        this.#listener.chunk(chunk)
      } catch (thrown) {
        this.#listenerThrew(thrown)
      }
    } else if (this.#phase === 'refused' && this.#received <= maxRefusalBytes) this.#refusal.push(chunk)
  }

  ended(): void {
    if (this.#phase === 'relaying') {
      this.#end(true)
      this.#notify(() => this.#listener.finished())
    } else if (this.#phase === 'refused') {
      const body = Buffer.concat(this.#refusal)
      const text = body.toString('utf8')
      if (this.#call.isAnswer?.(text)) return this.#passOn(body)
      const moved = this.#status >= 500 || this.#status === 429 ? this.#leaveAddress(text) : false
      if (moved) return
      const failure = this.#refusalOf(text)
      const fittedBody = this.#fitted ? undefined : fitAnswer(this.#call.body, failure)
      if (fittedBody === undefined) return this.#fail(failure)
      this.#fitted = true
      this.#call = { ...this.#call, body: fittedBody }
      this.#sendAgain()
    }
  }

  #sendAgain(): void {
    this.#phase = 'requesting'
    this.#received = 0
    this.#refusal = []
    this.#send()
  }

  /** Notes that the address has refused the request by an error of its own. Returns whether it is sent to another one. */
  #leaveAddress(text: string): boolean {
    const pauseMs = requestedPauseMs(this.#status, this.#refusalHeaders, text, Date.now())
    // A limit that names no time may be one of the request, such as its length.
    if (this.#status === 429 && pauseMs === 0) return false
    return this.#failedHere(`answered ${this.#status}`, { reached: true, pauseMs })
  }

  /** Notes that the request has failed at its address. Returns whether it is sent to another one. */
  #failedHere(reason: string, how: { reached: boolean; pauseMs?: number }): boolean {
    const { addresses } = this.#connections
    addresses.failed(this.#connection.address, reason, how)
    this.#tried ??= new Set()
    this.#tried.add(this.#connection.address)
    const other = this.#tried.size < maxTries ? this.#options.elsewhere?.(this.#tried) : undefined
    if (!other) return false
    this.#connection = other
    this.#resent = false
    this.#sendAgain()
    return true
  }

  /** Returns the failure of a refused request, and reports how long the engine wants no other. */
  #refusalOf(text: string): Failure {
    const { options } = this.#connections
    const failure = options.failureOf(this.#status, text, this.#call.path)
    const askedMs = requestedPauseMs(this.#status, this.#refusalHeaders, text, Date.now())
    // Another address may serve at once.
    const pauseMs = this.#tried ? Math.ceil(this.#connections.addresses.pauseMs()) : askedMs
    if (pauseMs === 0) return failure
    // Before the request fails, so that its slot is given to no other request.
    options.pauseRequested(pauseMs)
    return pauseRequested(failure, options.modelId, pauseMs)
  }

  failed(error: NodeJS.ErrnoException): void {
    if (this.#phase === 'ended') return
    if (error instanceof Failure) return this.#fail(error)
    const connections = this.#connections
    if (error.code === 'UNSENDABLE') {
      const message = `The request cannot be sent to the engine of '${connections.options.modelId}'. ${error.message}`
      return this.#fail(new Failure('worker_error', message, { final: true, cause: error }))
    }
    if (error.code === 'TIMEOUT') {
      connections.addresses.failed(this.#connection.address, 'made no progress', { reached: true })
      this.#fail(this.#failure(`made no progress for ${this.#timeoutMs / 1000} s`, error, 'timeout'))
      connections.stalled()
      return
    }
    // A connection that was open may end with the same error, after bytes were sent.
    const isRefused = isRefusal(error.code) && error.syscall === 'connect'
    this.#mayBeSent ||= !isRefused
    const unsent = isRefused && !this.#mayBeSent
    // The connection breaks shortly before the exit status of the engine is known, and the status explains more.
    connections.afterExit(engineFailure => {
      if (this.#phase === 'ended') return
      if (engineFailure) return this.#fail(unsent ? engineFailure().with({ unsent }) : engineFailure())
      // The engine may have closed the idle connection just as the request was sent: retry once on a new connection.
      const again = connections.options.isOwnProcess && socketMissing.has(error.code ?? '')
      if (this.#phase === 'requesting' && !this.#resent && (again || connectionClosed.has(error.code ?? ''))) {
        this.#resent = true
        return this.#send()
      }
      const reason = describe(error, this.#phase === 'requesting')
      if (this.#phase === 'requesting' && this.#failedHere(reason, { reached: false })) return
      const { modelId } = connections.options
      const untrusted = untrustedCertificate(`the engine of '${modelId}'`, error)
      // Nothing but a change of this server helps.
      if (untrusted) return this.#fail(new Failure('worker_error', untrusted, { final: true, cause: error }))
      this.#fail(this.#failure(reason, error))
    }, isRefused)
  }

  #passOn(body: Buffer): void {
    this.#end(true)
    this.#notify(() => {
      this.#listener.accepted('')
      this.#listener.chunk(body)
      this.#listener.finished()
    })
  }

  #tooLong(): void {
    this.#disconnect()
    this.#fail(this.#failure(`answered with more than ${this.#call.maxBytes} bytes`))
  }

  #failure(what: string, cause?: unknown, code: 'worker_error' | 'timeout' = 'worker_error'): Failure {
    const { modelId } = this.#connections.options
    return new Failure(code, `The engine of '${modelId}' ${what}. Trying again may help.`, { cause })
  }

  /** Calls the listener and catches what it throws, which is no error of the engine. */
  #notify(call: () => void): void {
    try {
      call()
    } catch (thrown) {
      this.#listenerThrew(thrown)
    }
  }

  /** Ends the request after a listener threw. `failed` is called all the same, as its caller still holds a slot. */
  #listenerThrew(thrown: unknown): void {
    this.#connections.options.listenerThrew(thrown)
    if (this.#phase === 'ended') return
    this.#disconnect()
    this.#end(false)
    try {
      this.#listener.failed(Failure.from(thrown))
    } catch (second) {
      this.#connections.options.listenerThrew(second)
    }
  }

  #fail(failure: Failure): void {
    this.#end(false)
    this.#notify(() => this.#listener.failed(failure))
  }

  #end(succeeded: boolean): void {
    this.#phase = 'ended'
    this.began ||= succeeded
    this.#refusal = []
    this.#connections.open.delete(this)
    this.#onEnd(succeeded)
  }

  #disconnect(): void {
    this.#connection.client.abort(this)
  }
}
