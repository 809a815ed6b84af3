import type { ServerResponse } from 'node:http'
import { Failure } from '../../../core/failure.ts'
import type { Streams, WatchedStream } from './streams.ts'

/** A request whose client reads a kept stream, or has asked for it. */
export interface ReadingRequest {
  readonly res: ServerResponse
  readonly streams: Pick<Streams, 'add' | 'remove'>
}

/** The request that a kept stream answers. */
export interface KeptRequest extends ReadingRequest {
  readonly caller: { readonly tokenId: string }
  outliveClient(): void
  stop(reason: Failure): void
}

/** What a relay writes a stream to: the response of its client, or a stream that is kept. */
export interface StreamOutput {
  readonly headersSent: boolean
  /** False: the reader has not read enough; `drain` follows. */
  write(bytes: Buffer | string): boolean
  end(bytes?: Buffer | string): void
  destroy(): void
  on(event: 'drain', listener: () => void): unknown
  off(event: 'drain', listener: () => void): unknown
  once(event: 'close', listener: () => void): unknown
}

/** Bytes of one stream that are kept; the oldest are dropped beyond that. An answer of 30,000 tokens has 7 MB. */
export const maxStreamBytes = 8 << 20
/** What an event adds besides its text, bytes. */
const eventOverhead = 100

interface KeptStreamOptions {
  /** The request whose answer it is. */
  exchange: KeptRequest
  /** How long it goes on without a reader, and is kept after its end. */
  resumeMs: number
  /** Called with the change of its size. */
  sized: (bytes: number) => void
  /** Called when nobody can resume it any more. */
  forgotten: () => void
}

/**
 * A stream that outlives the connection of its client, for as long as the client has asked: its events are numbered and
 * kept in memory, and the client, or whoever has its token, reads on after the last one that it has. Only then does the
 * engine go on after a disconnect. It never waits for its reader.
 */
export class KeptStream implements StreamOutput {
  readonly #options: KeptStreamOptions
  /** Events with their ids; the first has the number `#first`. */
  #events: Buffer[] = []
  #first = 1
  #bytes = 0
  #ended = false
  #isRead = false
  #reader: Reader | undefined
  #timer: NodeJS.Timeout | undefined
  #forgotten = false

  constructor(options: KeptStreamOptions) {
    this.#options = options
    const { exchange } = options
    exchange.outliveClient()
    this.#read(new Reader(exchange, 1, this))
  }

  /** The token that may resume it. */
  get tokenId(): string {
    return this.#options.exchange.caller.tokenId
  }

  get headersSent(): boolean {
    return this.#options.exchange.res.headersSent
  }

  write(bytes: Buffer | string): boolean {
    // Comments are for whoever reads now.
    if (typeof bytes === 'string') this.#reader?.comment(bytes)
    else this.#keep(bytes)
    return true
  }

  /** Does nothing once it has ended. */
  end(bytes?: Buffer | string): void {
    if (this.#ended) return
    if (bytes !== undefined) this.#keep(Buffer.from(bytes))
    this.close()
  }

  /** The answer has ended: nothing follows. */
  close(): void {
    if (this.#ended) return
    this.#ended = true
    this.#reader?.pump()
    if (!this.#reader) this.#waitForReader()
  }

  destroy(): void {
    this.close()
  }

  on(): void {}
  off(): void {}
  /** It does not wait until its reader has the end. */
  once(_: 'close', listener: () => void): void {
    queueMicrotask(listener)
  }

  /** The next events from this number on; undefined while there are none. Null: these are dropped. */
  from(number: number): Buffer[] | undefined | null {
    if (number < this.#first) return null
    const at = number - this.#first
    return at < this.#events.length ? this.#events.slice(at, at + 256) : undefined
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Whether a reader was sent all of it: it is kept only in case that its connection was lost at the very end. */
  get isRead(): boolean {
    return this.#isRead
  }

  /** Throws Failure `output_expired` if the event with this number is dropped. */
  requireEvent(number: number): void {
    if (number < this.#first)
      throw new Failure(
        'output_expired',
        `Of this stream only the events from ${this.#first} on are kept. Send the request again.`,
      )
  }

  /** Reads on from this number, until the end of the connection; a reader that is there ends. */
  resume(exchange: ReadingRequest, number: number): Promise<void> {
    this.#reader?.res.destroy()
    const reader = new Reader(exchange, number, this)
    this.#read(reader)
    return reader.closed
  }

  /** Ends the work and forgets the answer. */
  forget(): void {
    if (this.#forgotten) return
    this.#forgotten = true
    clearTimeout(this.#timer)
    if (this.#reader && this.headersSent) this.#reader.res.destroy()
    this.#events = []
    this.#options.sized(-this.#bytes)
    this.#bytes = 0
    this.#options.forgotten()
    if (!this.#ended)
      this.#options.exchange.stop(new Failure('cancelled', 'The client left and did not resume its stream in time.'))
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Drops the oldest events beyond so many bytes, but not the newest. */
  trim(maxBytes: number): void {
    let dropped = 0
    while (this.#bytes > maxBytes && this.#events.length > 1) {
      const size = this.#events.shift()!.length + eventOverhead
      this.#first++
      this.#bytes -= size
      dropped += size
    }
    if (dropped > 0) this.#options.sized(-dropped)
  }

  #read(reader: Reader): void {
    clearTimeout(this.#timer)
    this.#reader = reader
    reader.pump()
    void reader.closed.then(() => {
      if (this.#reader !== reader) return
      this.#reader = undefined
      this.#isRead = reader.res.writableFinished
      this.#waitForReader()
    })
  }

  #waitForReader(): void {
    clearTimeout(this.#timer)
    if (!this.#forgotten) this.#timer = setTimeout(() => this.forget(), this.#options.resumeMs).unref()
  }

  /** Keeps whole events, each with its number. */
  #keep(bytes: Buffer): void {
    if (this.#forgotten) return
    const text = bytes.toString('latin1')
    let size = 0
    for (const event of text.split('\n\n')) {
      if (event === '') continue
      const numbered = Buffer.from(`id: ${this.#first + this.#events.length}\n${event}\n\n`, 'latin1')
      this.#events.push(numbered)
      size += numbered.length + eventOverhead
    }
    this.#bytes += size
    this.#options.sized(size)
    this.trim(maxStreamBytes)
    this.#reader?.pump()
  }
}

/** A connection that reads a kept stream. */
class Reader implements WatchedStream {
  setIndex = -1
  blockedSince: number | undefined
  wroteAt = performance.now()
  readonly closed: Promise<void>
  readonly res: ServerResponse
  readonly #stream: KeptStream
  #next: number

  constructor({ res, streams }: ReadingRequest, next: number, stream: KeptStream) {
    this.res = res
    this.#next = next
    this.#stream = stream
    res.on('drain', () => {
      this.blockedSince = undefined
      this.pump()
    })
    streams.add(this)
    this.closed = new Promise(resolve => {
      const end = () => {
        streams.remove(this)
        resolve()
      }
      if (res.destroyed) end()
      else res.once('close', end)
    })
  }

  /** Writes what it has not read. Does nothing before the head of the response. */
  pump(): void {
    const { res } = this
    while (res.headersSent && !res.destroyed && !res.writableEnded && this.blockedSince === undefined) {
      const events = this.#stream.from(this.#next)
      if (events === null) return void res.destroy()
      if (events === undefined) {
        if (!this.#stream.ended) return
        this.blockedSince = performance.now()
        return void res.end()
      }
      this.#next += events.length
      this.#write(Buffer.concat(events))
    }
  }

  comment(text: string): void {
    if (this.res.headersSent && !this.res.writableEnded && this.blockedSince === undefined) this.#write(text)
  }

  #write(bytes: Buffer | string): void {
    this.wroteAt = performance.now()
    if (!this.res.write(bytes)) this.blockedSince = this.wroteAt
  }

  /** The relay pings. */
  ping(): void {}
  cut(): void {
    this.res.destroy()
  }
  /** The relay says why the stream ends. */
  interrupt(): void {}
}
