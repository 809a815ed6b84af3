import type { ChatChunk, ChatStreamForm } from '../../core/dialects/chat-form.ts'
import { Failure } from '../../core/failure.ts'
import type { CallEnd } from '../../core/jobs/call.ts'
import type { EngineExchange, EngineListener } from '../../core/models/engine-call.ts'
import type { Usage } from '../../core/store/store.ts'
import { type StreamAnswerFormat, StreamShape } from '../../core/tasks/stream-shape.ts'
import { dataOf, latin1 } from '../../core/tasks/stream-text.ts'
import { eventsHead, pingComment } from '../http/answer/sse.ts'
import { errorFrame } from '../http/request/errors.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { StreamOutput } from '../http/streams/kept-stream.ts'
import type { Streams, WatchedStream } from '../http/streams/streams.ts'
import { writeChunk } from '../http/streams/write-chunk.ts'
import type { ThroughputMeter } from '../metrics/throughput.ts'
import type { Timings } from '../metrics/timings.ts'

interface RelayOptions {
  exchange: ClientExchange
  /** Where the stream is kept, so that it outlives the connection; absent: it is written to the client. */
  kept?: StreamOutput | undefined
  answerFormat: StreamAnswerFormat
  /** The model whose engine answers. */
  modelId: string
  /** Translates the events into another form. */
  translation?: ChatStreamForm | undefined
  /** Keeps the whole answer before its end is sent. Never rejects. */
  keep?: ((ended: object) => Promise<void>) | undefined
  maxFrameBytes: number
  streams: Streams
  meter: ThroughputMeter
  timings: Pick<Timings, 'record'>
  /** Called when the engine has begun to answer, just before the first byte is sent to the client. */
  begun(ignored: string | undefined): void
  /** `timeToFirstTokenMs`: from the request to the first piece of text, milliseconds; null without any. */
  ended(end: CallEnd, timeToFirstTokenMs: number | null): void
}

/**
 * Relays a stream from an engine to a client. Splits the bytes into frames, which `StreamShape` interprets; frames that
 * need no change are passed on unchanged. Buffers at most one frame besides the socket's buffer: a slow reader pauses
 * reading from the engine, one that stops reading is cut at the write deadline, and a disconnect ends the engine's
 * request at once. Nothing is sent before the first event, or before the first ping while the engine is silent: an
 * engine that fails until then is replaced by another one.
 */
export class StreamRelay implements EngineListener, WatchedStream {
  setIndex = -1
  blockedSince: number | undefined
  wroteAt = performance.now()
  readonly #client: ClientExchange
  readonly #res: StreamOutput
  readonly #options: RelayOptions
  #engine: EngineExchange | undefined
  #partial: Buffer | undefined
  #hasEnded = false
  /** The engine has accepted the request. */
  #accepted = false
  /** What the engine left out of the request. */
  #ignored: string | undefined
  /** The client has got the headers. */
  #begun = false
  /** When the first and the latest piece of text arrived, monotonic milliseconds; 0 before the first. */
  #firstAt = 0
  #latestAt = 0
  readonly #shape: StreamShape
  readonly #onAbort = () => {
    const reason = this.#client.abortSource.reason as Failure
    if (this.#hasEnded) return
    if (reason.code === 'cancelled') {
      if (this.#begun && (this.#options.kept || !this.#client.disconnected)) this.#res.end(this.#lastWords(reason))
      this.#abandon()
    } else {
      this.#engine?.abort()
      this.failed(reason)
    }
  }
  readonly #onDrain = () => {
    this.blockedSince = undefined
    this.#engine?.resume()
  }

  constructor(options: RelayOptions) {
    this.#options = options
    this.#shape = new StreamShape(options.answerFormat)
    this.#client = options.exchange
    this.#res = options.kept ?? options.exchange.res
    this.#client.abortSource.addEventListener('abort', this.#onAbort)
  }

  /** Sets the request to the engine, once it is sent. */
  attach(engine: EngineExchange): void {
    if (this.#hasEnded) engine.abort()
    else this.#engine = engine
    if (this.#client.abortSource.aborted) this.#onAbort()
  }

  accepted(contentType: string, ignored?: string): void {
    if (this.#hasEnded) return
    if (!contentType.startsWith('text/event-stream')) {
      this.#failWith(`'${contentType.slice(0, 60)}' instead of a stream`)
      return
    }
    this.#accepted = true
    this.#ignored = ignored
    this.wroteAt = performance.now()
    this.#options.streams.add(this)
    this.#res.on('drain', this.#onDrain)
  }

  chunk(bytes: Buffer): void {
    if (this.#hasEnded) return
    const all = this.#partial ? Buffer.concat([this.#partial, bytes]) : bytes
    const text = all.toString('latin1')
    const end = completeUntil(text)
    this.#partial = end === all.length ? undefined : all.subarray(end)
    if (this.#partial && this.#partial.length > this.#options.maxFrameBytes) {
      this.#failWith('an event larger than any answer')
      return
    }
    if (end > 0) this.#forward(text, end)
  }

  finished(): void {
    if (this.#hasEnded) return
    try {
      const last = this.#partial?.toString('latin1').trimEnd()
      if (last) this.#write(this.#shaped(last) ?? `${last}\n\n`)
      const end = this.#shape.end()
      const { translation, keep } = this.#options
      this.#begin()
      const bytes = Buffer.from(translation ? this.#translated(end) + latin1(translation.end()) : end, 'latin1')
      if (keep && translation?.ended) void keep(translation.ended).then(() => this.#res.end(bytes))
      else this.#res.end(bytes)
    } catch (thrown) {
      return this.failed(Failure.from(thrown))
    }
    this.#end({ how: 'completed', usage: this.#shape.usage })
  }

  failed(failure: Failure): void {
    this.#failed(failure, failure.code === 'worker_error')
  }

  /** `repeatable`: another engine may answer. */
  #failed(failure: Failure, repeatable: boolean): void {
    if (this.#hasEnded) return
    if (!this.#begun && repeatable) {
      this.#end({ how: 'retry', failure })
      return
    }
    if (this.#begun) this.#res.end(this.#lastWords(failure))
    this.#end({ how: 'failed', failure, usage: this.#shape.usage })
  }

  ping(): void {
    if (this.#options.translation?.contentType !== 'application/x-ndjson') {
      this.#begin()
      this.#wrote(this.#res.write(pingComment))
    }
  }

  cut(): void {
    this.#abandon()
    this.#options.streams.remove(this)
    this.#res.destroy()
  }

  interrupt(): void {
    this.#engine?.abort()
    this.failed(new Failure('shutting_down', 'The server is stopping. Send the request again in 5 s.'))
  }

  /** Writes the complete frames; as one chunk if none of them changes. */
  #forward(text: string, end: number): void {
    const { meter } = this.#options
    const before = this.#shape.pieces
    let changed = ''
    /** Text before this position is in `changed`; text from here to `at` is written unchanged. */
    let from = 0
    let at = 0
    try {
      while (at < end) {
        const blank = text.indexOf('\n\n', at)
        const crlf = text.indexOf('\r\n\r\n', at)
        const windows = crlf >= 0 && (blank < 0 || crlf < blank)
        const stop = windows ? crlf : blank
        const next = stop + (windows ? 4 : 2)
        const shaped = this.#shaped(text.slice(at, stop))
        if (shaped !== undefined || windows) {
          changed += text.slice(from, at) + (shaped ?? `${text.slice(at, stop)}\n\n`)
          from = next
        }
        at = next
      }
    } catch (thrown) {
      changed += text.slice(from, at)
      this.#write(changed)
      this.#engine?.abort()
      // What the engine says itself it would say again.
      this.#failed(Failure.from(thrown), false)
      return
    } finally {
      meter.output += this.#shape.pieces - before
      if (this.#shape.pieces > before) this.#timePiece()
    }
    this.#write(from === 0 && end === text.length ? text : changed + text.slice(from, end))
  }

  /** What the client gets for one event, as latin1 of its bytes; undefined for the unchanged event. */
  #shaped(event: string): string | undefined {
    const shaped = this.#shape.event(event)
    return this.#options.translation ? this.#translated(shaped ?? event) : shaped
  }

  /** Translates events of our API, which have one line each, into the other form. */
  #translated(events: string): string {
    let text = ''
    for (const event of events.split('\n\n')) {
      const data = dataOf(event)
      if (!data || data === '[DONE]') continue
      const chunk = JSON.parse(Buffer.from(data, 'latin1').toString('utf8')) as ChatChunk
      text += this.#options.translation!.chunk(chunk)
    }
    return latin1(text)
  }

  /** What a client gets when its stream fails after the first byte. */
  #lastWords(failure: Failure): string {
    const { translation } = this.#options
    return translation ? translation.failure(failure, this.#client.id) : errorFrame(failure, this.#client.id)
  }

  #begin(): void {
    if (this.#begun) return
    this.#begun = true
    this.#options.begun(this.#ignored)
    const [type, headers] = eventsHead
    // A stream that waited for its slot may have its head already.
    if (!this.#res.headersSent) this.#client.head(200, this.#options.translation?.contentType ?? type, headers)
  }

  /** Writes events, as latin1 of their bytes, if there are any. */
  #write(events: string): void {
    if (events === '') return
    this.#begin()
    const { kept, exchange } = this.#options
    this.#wrote(kept ? kept.write(Buffer.from(events, 'latin1')) : writeChunk(exchange.res, events))
  }

  /** `hasRoom`: what writing returned. */
  #wrote(hasRoom: boolean): void {
    this.wroteAt = performance.now()
    if (hasRoom || this.blockedSince !== undefined) return
    this.blockedSince = this.wroteAt
    this.#engine?.pause()
  }

  #failWith(what: string): void {
    this.#engine?.abort()
    this.failed(new Failure('worker_error', `The engine answered ${what}. Trying again may help.`))
  }

  #abandon(): void {
    if (this.#hasEnded) return
    this.#engine?.abort()
    this.#end({ how: 'cancelled', usage: this.#shape.usage })
  }

  #end(end: CallEnd): void {
    this.#hasEnded = true
    this.#partial = undefined
    this.#client.abortSource.removeEventListener('abort', this.#onAbort)
    this.#res.off('drain', this.#onDrain)
    if (end.how !== 'retry') this.#count(end.usage)
    const timeToFirstTokenMs = this.#recordTimings()
    if (this.#begun) this.#watchEnd()
    else if (this.#accepted) this.#options.streams.remove(this)
    this.#options.ended(end, timeToFirstTokenMs)
  }

  #timePiece(): void {
    this.#latestAt = performance.now()
    this.#firstAt ||= this.#latestAt
  }

  /** Records timings once per stream, because a histogram costs more than relaying a frame. Returns the first one. */
  #recordTimings(): number | null {
    const { timings, modelId } = this.#options
    if (this.#firstAt === 0) return null
    const timeToFirstTokenMs = this.#firstAt - this.#client.startedAt
    timings.record('firstToken', modelId, timeToFirstTokenMs)
    const gaps = this.#shape.pieces - 1
    if (gaps > 0) timings.record('token', modelId, (this.#latestAt - this.#firstAt) / gaps)
    return timeToFirstTokenMs
  }

  /** Counts the engine's reported usage beyond the pieces that were counted during the stream. */
  #count({ inputTokens, outputTokens }: Usage): void {
    const { meter } = this.#options
    meter.input += inputTokens
    meter.output += Math.max(0, outputTokens - this.#shape.pieces)
  }

  /**
   * Keeps the stream watched until the socket is closed, so that a reader that stops reading is cut at the deadline.
   */
  #watchEnd(): void {
    this.blockedSince = performance.now()
    const { streams } = this.#options
    // A destroyed response emits no further `close`.
    if (this.#client.disconnected) streams.remove(this)
    else this.#res.once('close', () => streams.remove(this))
  }
}

/**
 * Returns the end of the last complete frame in a stream of server-sent events, 0 if there is none. The text is
 * latin1, with one character per byte.
 */
export function completeUntil(text: string): number {
  // Most often; searching backwards costs more than all else that is done with a frame.
  if (text.endsWith('\n\n')) return text.length
  const unix = text.lastIndexOf('\n\n')
  const windows = text.lastIndexOf('\r\n\r\n')
  return Math.max(unix < 0 ? 0 : unix + 2, windows < 0 ? 0 : windows + 4)
}
