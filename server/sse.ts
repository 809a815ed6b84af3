import type { ServerResponse } from 'node:http'
import type { Failure } from '../core/failure.ts'
import type { Call } from './call.ts'
import type { Head } from './embedded.ts'
import { accessEndEvent } from './errors.ts'
import type { WatchedStream } from './std/streams.ts'

/** One record of a stream of server-sent events; `data` is text on one line, such as JSON. */
export interface SseRecord {
  data: string
  event?: string
  /** What the reader sends back as `Last-Event-ID` when it comes again. */
  id?: string
}

/** A record of which other streams send the end too: the bytes from somewhere in its data to the blank line behind it. */
export type SharedRecord = SseRecord & { end: Buffer }

const fieldsText = ({ id, event }: Omit<SseRecord, 'data'>): string =>
  `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}`

export const sseText = (record: SseRecord): string => `${fieldsText(record)}data: ${record.data}\n\n`

/** The head of a response that is such a stream. */
export const eventsHead: Head = [
  'text/event-stream; charset=utf-8',
  ['cache-control', 'no-cache', 'x-accel-buffering', 'no'],
]

/** How long a reader whose stream broke waits before it comes again, milliseconds. */
const reconnectMs = 2_000

/**
 * A comment that keeps the connection open. No blank line follows: it would end an event, and some readers (Python's
 * httpx-sse) then report one with empty data.
 */
export const pingComment = ': ping\n'

interface EventStreamOptions {
  /** The longest silence, milliseconds, where it is not that of all streams. */
  pingMs?: number
  /** The request began the work that the stream reports: the stream goes on whatever becomes of its token. */
  generation?: boolean
}

/**
 * Opens an event stream when it is its turn, because a thousand that are opened at once would hold up everybody else;
 * requests to an `eventStream` route have waited already. Throws Failure `rate_limit` where the token or the organization
 * has as many as it may have.
 */
export async function openEventStream(call: Call, options: EventStreamOptions = {}): Promise<EventStream> {
  if (!options.generation) call.streamLimits.take(call)
  if (!call.route.eventStream) await call.streams.beforeOpening()
  return new EventStream(call, options)
}

/**
 * A response that is a stream of server-sent events, made by `openEventStream`. Nothing is queued here: whoever writes asks `keepsUp` before the
 * next record and waits for `caughtUp` where it does not, so a reader that takes nothing costs what its socket holds
 * until it is cut at the write deadline. The watch over all streams pings it; it ends when the reader leaves, when its
 * token loses the right to it, and when the server begins to stop.
 */
export class EventStream implements WatchedStream {
  setIndex = -1
  blockedSince: number | undefined
  wroteAt = performance.now()
  readonly pingMs: number | undefined
  /** Resolves when the connection is closed, whoever closed it. */
  readonly over: Promise<void>
  readonly #res: ServerResponse
  #onChange: (() => void) | undefined
  #begun = false

  constructor(call: Call, { pingMs, generation = false }: EventStreamOptions = {}) {
    const { res, streams } = call
    this.#res = res
    this.pingMs = pingMs
    call.head(200, ...eventsHead)
    streams.add(this)
    const unwatch = generation ? undefined : call.access.watch(call, failure => this.#refuse(failure, call.id))
    res.on('drain', () => {
      this.blockedSince = undefined
      this.#changed()
    })
    this.over = new Promise(resolve => {
      const end = () => {
        streams.remove(this)
        unwatch?.()
        this.#changed()
        resolve()
      }
      if (call.disconnected) end()
      else res.once('close', end)
    })
    if (call.req.method === 'HEAD') this.end()
    else res.flushHeaders()
  }

  /** Nothing can be written any more: it was ended, here or by the reader. */
  get ended(): boolean {
    return this.#res.writableEnded || this.#res.destroyed
  }

  /** Whether the reader has taken enough of what was written for more to be written. */
  get keepsUp(): boolean {
    return this.blockedSince === undefined
  }

  send(record: SseRecord): void {
    if (!this.ended) this.#write(`${this.#retry()}${sseText(record)}`)
  }

  /** The same without a copy of shared bytes. */
  sendShared(record: SharedRecord): void {
    if (this.ended) return
    this.#res.cork()
    this.#write(`${this.#retry()}${fieldsText(record)}data: ${record.data}`)
    this.#write(record.end)
    this.#res.uncork()
  }

  /** Sends whole events that are text already. */
  sendEvents(bytes: Buffer): void {
    if (!this.ended && bytes.length > 0) this.#write(bytes)
  }

  /** Resolves when the reader keeps up again, or when the stream has ended. One may wait at a time. */
  caughtUp(): Promise<void> {
    if (this.keepsUp || this.ended) return Promise.resolve()
    return new Promise(resolve => {
      this.#onChange = resolve
    })
  }

  ping(): void {
    if (!this.ended) this.#write(pingComment)
  }

  cut(): void {
    this.#res.destroy()
  }

  interrupt(): void {
    this.dismiss()
  }

  /** The reader comes again by itself and goes on from the last record that it has. */
  dismiss(): void {
    if (this.ended) return
    this.#write(': the server is stopping\n')
    this.end()
  }

  #refuse(failure: Failure, requestId: string): void {
    if (this.ended) return
    this.#write(accessEndEvent(failure, requestId))
    this.end()
  }

  end(): void {
    if (this.ended) return
    this.#res.end()
    // From here on it is watched for taking the end.
    this.blockedSince ??= performance.now()
    this.#changed()
  }

  /** The field that the first event begins with: alone in a block it would be an event without data to some readers. */
  #retry(): string {
    if (this.#begun) return ''
    this.#begun = true
    return `retry: ${reconnectMs}\n`
  }

  #changed(): void {
    const waiting = this.#onChange
    this.#onChange = undefined
    waiting?.()
  }

  #write(bytes: string | Buffer): void {
    this.wroteAt = performance.now()
    if (!this.#res.write(bytes)) this.blockedSince ??= this.wroteAt
  }
}
