import type { ServerResponse } from 'node:http'
import { Failure } from '../../core/failure.ts'
import type { CallEnd } from '../../core/jobs/call.ts'
import type { EngineListener, Exchange } from '../../core/models/fleet.ts'
import type { Usage } from '../../core/store/store.ts'
import { type StreamAnswerFormat, StreamShape } from '../../core/tasks/stream-shape.ts'
import type { Call } from '../call.ts'
import { errorFrame } from '../errors.ts'
import { pingComment } from '../sse.ts'
import type { Meter } from '../throughput.ts'
import type { Timings } from '../timings.ts'
import type { Streams, WatchedStream } from './streams.ts'

interface RelayOptions {
  call: Call
  answerFormat: StreamAnswerFormat
  maxFrameBytes: number
  streams: Streams
  meter: Meter
  timings: Pick<Timings, 'took'>
  /** The engine has taken the request and begins to answer. */
  begun(): void
  ended(end: CallEnd): void
}

/**
 * Carries a stream from an engine to a client. What is in its frames is `StreamShape`'s business; here they are cut out
 * of the bytes, and the caller gets them as they came where nothing about them has to change.
 * Holds at most one frame and what the socket has not taken yet: a slow reader stops the reading from the engine,
 * a stuck one is cut at the write deadline, a departed one ends the engine's request at once.
 */
export class StreamRelay implements EngineListener, WatchedStream {
  setIndex = -1
  blockedSince: number | undefined
  wroteAt = performance.now()
  readonly #call: Call
  readonly #res: ServerResponse
  readonly #options: RelayOptions
  #exchange: Exchange | undefined
  #partial: Buffer | undefined
  #over = false
  #begun = false
  /** When the first and the latest piece of text came, on the monotonic clock; 0 before the first. */
  #firstAt = 0
  #latestAt = 0
  readonly #shape: StreamShape
  readonly #leave = () => {
    const reason = this.#call.abortSource.reason as Failure
    if (this.#over) return
    if (reason.code === 'cancelled') {
      if (this.#begun && !this.#call.disconnected) this.#res.end(errorFrame(reason, this.#call.id))
      this.#abandon()
    } else {
      this.#exchange?.abort()
      this.failed(reason)
    }
  }
  readonly #drain = () => {
    this.blockedSince = undefined
    this.#exchange?.resume()
  }

  constructor(options: RelayOptions) {
    this.#options = options
    this.#shape = new StreamShape(options.answerFormat)
    this.#call = options.call
    this.#res = options.call.res
    this.#call.abortSource.addEventListener('abort', this.#leave)
  }

  /** The engine's request, once it is on its way. */
  attach(exchange: Exchange): void {
    if (this.#over) exchange.abort()
    else this.#exchange = exchange
    if (this.#call.abortSource.aborted) this.#leave()
  }

  accepted(contentType: string): void {
    if (this.#over) return
    if (!contentType.startsWith('text/event-stream')) {
      this.#fault(`'${contentType.slice(0, 60)}' where a stream was asked for`)
      return
    }
    this.#begun = true
    this.#options.begun()
    this.#call.head(200, 'text/event-stream; charset=utf-8', ['cache-control', 'no-cache', 'x-accel-buffering', 'no'])
    this.#options.streams.add(this)
    this.#res.on('drain', this.#drain)
  }

  chunk(bytes: Buffer): void {
    if (this.#over) return
    const all = this.#partial ? Buffer.concat([this.#partial, bytes]) : bytes
    const text = all.toString('latin1')
    const end = completeUntil(text)
    this.#partial = end === all.length ? undefined : all.subarray(end)
    if (this.#partial && this.#partial.length > this.#options.maxFrameBytes) {
      this.#fault('an event larger than any answer')
      return
    }
    if (end > 0) this.#forward(all, text, end)
  }

  finished(): void {
    if (this.#over) return
    try {
      const last = this.#partial?.toString('latin1').trimEnd()
      if (last) this.#write(Buffer.from(this.#shape.event(last) ?? `${last}\n\n`, 'latin1'))
      this.#res.end(Buffer.from(this.#shape.end(), 'latin1'))
    } catch (thrown) {
      return this.failed(Failure.from(thrown))
    }
    this.#end({ how: 'completed', usage: this.#shape.usage })
  }

  failed(failure: Failure): void {
    if (this.#over) return
    if (!this.#begun && failure.code === 'worker_error') {
      this.#end({ how: 'retry', failure })
      return
    }
    if (this.#begun) this.#res.end(errorFrame(failure, this.#call.id))
    this.#end({ how: 'failed', failure, usage: this.#shape.usage })
  }

  ping(): void {
    this.#write(pingComment)
  }

  cut(): void {
    this.#abandon()
    this.#options.streams.remove(this)
    this.#res.destroy()
  }

  interrupt(): void {
    this.#exchange?.abort()
    this.failed(new Failure('shutting_down', 'The server is stopping. Send the request again in a moment.'))
  }

  /** Passes the complete frames on, all at once where none of them changes. */
  #forward(all: Buffer, text: string, end: number): void {
    const { meter } = this.#options
    const before = this.#shape.pieces
    let changed = ''
    /** Up to here everything is in `changed`; what follows up to `at` goes on as it is. */
    let from = 0
    let at = 0
    try {
      while (at < end) {
        const blank = text.indexOf('\n\n', at)
        const crlf = text.indexOf('\r\n\r\n', at)
        const windows = crlf >= 0 && (blank < 0 || crlf < blank)
        const stop = windows ? crlf : blank
        const next = stop + (windows ? 4 : 2)
        const shaped = this.#shape.event(text.slice(at, stop))
        if (shaped !== undefined || windows) {
          changed += text.slice(from, at) + (shaped ?? `${text.slice(at, stop)}\n\n`)
          from = next
        }
        at = next
      }
    } catch (thrown) {
      changed += text.slice(from, at)
      if (changed !== '') this.#write(Buffer.from(changed, 'latin1'))
      this.#exchange?.abort()
      this.failed(Failure.from(thrown))
      return
    } finally {
      meter.output += this.#shape.pieces - before
      if (this.#shape.pieces > before) this.#spoke()
    }
    if (from === 0) this.#write(end === all.length ? all : all.subarray(0, end))
    else if (changed !== '' || from < end) this.#write(Buffer.from(changed + text.slice(from, end), 'latin1'))
  }

  #write(bytes: Buffer | string): void {
    this.wroteAt = performance.now()
    if (this.#res.write(bytes) || this.blockedSince !== undefined) return
    this.blockedSince = this.wroteAt
    this.#exchange?.pause()
  }

  #fault(what: string): void {
    this.#exchange?.abort()
    this.failed(new Failure('worker_error', `The engine answered ${what}. Trying again may help.`))
  }

  #abandon(): void {
    if (this.#over) return
    this.#exchange?.abort()
    this.#end({ how: 'cancelled', usage: this.#shape.usage })
  }

  #end(end: CallEnd): void {
    this.#over = true
    this.#partial = undefined
    this.#call.abortSource.removeEventListener('abort', this.#leave)
    this.#res.off('drain', this.#drain)
    if (end.how !== 'retry') this.#count(end.usage)
    this.#timed()
    if (this.#begun) this.#seeOff()
    this.#options.ended(end)
  }

  #spoke(): void {
    this.#latestAt = performance.now()
    this.#firstAt ||= this.#latestAt
  }

  /** Once a stream, because a histogram costs more than the relaying of a frame. */
  #timed(): void {
    const { timings, answerFormat } = this.#options
    if (this.#firstAt === 0) return
    timings.took('firstToken', answerFormat.modelId, this.#firstAt - this.#call.startedAt)
    const gaps = this.#shape.pieces - 1
    if (gaps > 0) timings.took('token', answerFormat.modelId, (this.#latestAt - this.#firstAt) / gaps)
  }

  /** What the engine says beyond the frames that were counted as they passed. */
  #count({ inputTokens, outputTokens }: Usage): void {
    const { meter } = this.#options
    meter.input += inputTokens
    meter.output += Math.max(0, outputTokens - this.#shape.pieces)
  }

  /** The watch goes on until the socket has taken the rest, or a reader that stopped reading would stay for ever. */
  #seeOff(): void {
    this.blockedSince = performance.now()
    const { streams } = this.#options
    // A response that is gone tells nobody any more that it closed.
    if (this.#call.disconnected) streams.remove(this)
    else this.#res.once('close', () => streams.remove(this))
  }
}

/**
 * Returns the end of the last complete frame in a stream of server-sent events, 0 when there is none. The text is
 * latin1, in which every byte is one character.
 */
export function completeUntil(text: string): number {
  const unix = text.lastIndexOf('\n\n')
  const windows = text.lastIndexOf('\r\n\r\n')
  return Math.max(unix < 0 ? 0 : unix + 2, windows < 0 ? 0 : windows + 4)
}
