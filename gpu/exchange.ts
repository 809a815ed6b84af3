import { Readable } from 'node:stream'
import type { Client, Dispatcher } from 'undici'
import { Failure } from '../core/failure.ts'
import type { EngineCall, EngineListener, Exchange, StreamedBody } from '../core/models/fleet.ts'
import type { SwapSetMember } from '../core/swap-set.ts'
import { fitAnswer } from './fit-answer.ts'
import type { Link } from './link.ts'

/** An engine's refusal is a short text; one that is not is cut here. */
const longestRefusal = 64 << 10

/** Set while undici's parser is on the stack: resuming another connection from inside it would trip an assertion. */
let parsing = 0

class Aborted extends Error {}

/** The headers of every request, for a body that is no JSON. */
const typed = (headers: readonly string[], contentType: string): string[] =>
  headers.map((text, at) => (at % 2 === 1 && headers[at - 1] === 'content-type' ? contentType : text))

/** A larger body is written in pieces: a whole one would be kept by the connection until the answer has ended. */
const pieceBytes = 1 << 20

function* piecesOf(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes)
}

const streamed = (body: EngineCall['body']): body is StreamedBody =>
  typeof body !== 'string' && !(body instanceof Uint8Array)

/** A connection that was up and went away. */
const brokenOff: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

function whatHappened(error: Error & { code?: string }, asking: boolean): string {
  if (error.name === 'HTTPParserError') return 'did not answer in HTTP'
  if (!asking) return 'broke off its answer'
  return brokenOff.has(error.code ?? '') ? 'closed the connection without an answer' : 'cannot be reached'
}

/**
 * One request to an engine. The hot path: it is undici's handler itself, so that between the socket and the listener
 * there is one call and no promise, no stream and no copy. It ends exactly once: finished, failed, or aborted.
 */
export class EngineExchange implements Exchange, SwapSetMember, Dispatcher.DispatchHandler {
  /** Among those of its link that are on their way. */
  setIndex = -1
  #link: Link
  #client: Client
  #call: EngineCall
  #listener: EngineListener
  /** Called when it ends; true when the engine did what it was asked to. */
  #onEnd: (well: boolean) => void
  #controller: Dispatcher.DispatchController | undefined
  #phase: 'asking' | 'relaying' | 'refused' | 'ended' = 'asking'
  #status = 0
  #received = 0
  #refusal: Buffer[] = []
  #paused = false
  #again = false
  /** Whether it was sent again with fewer tokens for its answer. */
  #fitted = false

  constructor(link: Link, client: Client, call: EngineCall, listener: EngineListener, onEnd: (well: boolean) => void) {
    this.#link = link
    this.#client = client
    this.#call = call
    this.#listener = listener
    this.#onEnd = onEnd
  }

  /** Sends it. */
  start(): void {
    const { engineFailure, open } = this.#link
    open.add(this)
    // Later, so that the caller holds the exchange before it hears of its end.
    if (engineFailure) queueMicrotask(() => this.cut(engineFailure()))
    else this.#send()
  }

  #send(): void {
    const { method = 'POST', path, body, contentType, patienceMs } = this.#call
    const { headers } = this.#link.options
    const silenceMs = patienceMs === undefined ? undefined : this.#silenceMs
    const ofBody = contentType === undefined ? headers : typed(headers, contentType)
    const stream = streamed(body)
    const pieces = body instanceof Uint8Array && body.length > pieceBytes
    const bytes = stream ? body.bytes : pieces ? body.length : undefined
    this.#controller = undefined
    this.#client.dispatch(
      {
        method,
        path,
        headers: bytes === undefined ? ofBody : [...ofBody, 'content-length', String(bytes)],
        body:
          method === 'GET'
            ? null
            : stream
              ? body.open()
              : pieces
                ? Readable.from(piecesOf(body), { objectMode: false })
                : body,
        headersTimeout: silenceMs,
        bodyTimeout: silenceMs,
      },
      this,
    )
  }

  get #silenceMs(): number {
    return this.#link.options.noProgressMs + (this.#call.patienceMs ?? 0)
  }

  pause(): void {
    this.#paused = true
    this.#controller?.pause()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    if (parsing === 0) this.#controller?.resume()
    else queueMicrotask(() => !this.#paused && this.#controller?.resume())
  }

  abort(): void {
    if (this.#phase === 'ended') return
    this.#end(false)
    this.#disconnect()
  }

  /** The engine is gone: ends with this failure and nothing else. */
  cut(failure: Failure): void {
    if (this.#phase === 'ended') return
    this.#fail(failure)
    this.#disconnect()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#phase === 'ended') controller.abort(new Aborted())
    else if (this.#paused) controller.pause()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200 || this.#phase === 'ended') return
    this.#link.lastProgressAt = performance.now()
    if (status >= 300) {
      this.#phase = 'refused'
      this.#status = status
      // A refusal is for us: a reader who is not ready for an answer must not hold it up.
      controller.resume()
      return
    }
    this.#phase = 'relaying'
    // It is not sent again, and a stream may take minutes.
    if (this.#call.stream) this.#call = { ...this.#call, body: '' }
    const type = headers['content-type']
    this.#tell(() => this.#listener.accepted(typeof type === 'string' ? type : ''))
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#link.lastProgressAt = performance.now()
    this.#received += chunk.length
    if (this.#phase === 'relaying') {
      if (!this.#call.stream && this.#received > this.#call.maxBytes) return this.#tooLong()
      parsing++
      try {
        this.#listener.chunk(chunk)
      } catch (thrown) {
        this.#broken(thrown)
      } finally {
        parsing--
      }
    } else if (this.#phase === 'refused' && this.#received <= longestRefusal) this.#refusal.push(chunk)
  }

  onResponseEnd(): void {
    if (this.#phase === 'relaying') {
      this.#end(true)
      this.#tell(() => this.#listener.finished())
    } else if (this.#phase === 'refused') {
      const { failureOf } = this.#link.options
      const failure = failureOf(this.#status, Buffer.concat(this.#refusal).toString('utf8'), this.#call.path)
      const fitting = this.#fitted ? undefined : fitAnswer(this.#call.body, failure)
      if (fitting === undefined) return this.#fail(failure)
      this.#fitted = true
      this.#call = { ...this.#call, body: fitting }
      this.#phase = 'asking'
      this.#received = 0
      this.#refusal = []
      this.#send()
    }
  }

  onResponseError(controller: Dispatcher.DispatchController | null, error: Error & { code?: string }): void {
    if (this.#phase === 'ended') return
    // Without a controller it is the answer to the sending itself, of which the caller does not hold the exchange yet.
    if (controller) this.#failed(error)
    else queueMicrotask(() => this.#failed(error))
  }

  #failed(error: Error & { code?: string }): void {
    if (this.#phase === 'ended') return
    if (error instanceof Failure) return this.#fail(error)
    const link = this.#link
    if (error.code === 'UND_ERR_HEADERS_TIMEOUT' || error.code === 'UND_ERR_BODY_TIMEOUT') {
      this.#fail(this.#fault(`made no progress for ${this.#silenceMs / 1000} s`, error, 'timeout'))
      link.stalled()
      return
    }
    // A connection breaks a moment before its engine is known to have died, and that is the better reason.
    link.afterExit(engineFailure => {
      if (this.#phase === 'ended') return
      if (engineFailure) return this.#fail(engineFailure())
      // The engine may have closed an idle connection in the very moment it was used again: once more, on a new one.
      if (this.#phase === 'asking' && !this.#again && brokenOff.has(error.code ?? '')) {
        this.#again = true
        return this.#send()
      }
      this.#fail(this.#fault(whatHappened(error, this.#phase === 'asking'), error))
    })
  }

  #tooLong(): void {
    this.#fail(this.#fault(`answered with more than ${this.#call.maxBytes} bytes`))
    this.#disconnect()
  }

  #fault(what: string, cause?: unknown, code: 'worker_error' | 'timeout' = 'worker_error'): Failure {
    const { modelId } = this.#link.options
    return new Failure(code, `The engine of '${modelId}' ${what}. Trying again may help.`, { cause })
  }

  /** Calls the listener outside undici's reach: it would take an exception of ours for a fault of the engine. */
  #tell(say: () => void): void {
    parsing++
    try {
      say()
    } catch (thrown) {
      this.#broken(thrown)
    } finally {
      parsing--
    }
  }

  /** A listener threw. It hears of the end all the same: whoever waits for it holds a slot. */
  #broken(thrown: unknown): void {
    this.#link.options.fault(thrown)
    if (this.#phase === 'ended') return
    this.#end(false)
    this.#disconnect()
    try {
      this.#listener.failed(Failure.from(thrown))
    } catch (again) {
      this.#link.options.fault(again)
    }
  }

  #fail(failure: Failure): void {
    this.#end(false)
    this.#tell(() => this.#listener.failed(failure))
  }

  #end(well: boolean): void {
    this.#phase = 'ended'
    this.#refusal = []
    this.#link.open.delete(this)
    this.#onEnd(well)
  }

  #disconnect(): void {
    this.#controller?.abort(new Aborted())
  }
}
