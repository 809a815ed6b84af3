import type { ServerResponse } from 'node:http'
import { Failure, invalid } from '../../../core/failure.ts'
import { accessEndEvent } from '../request/errors.ts'
import type { ClientExchange } from '../request/exchange.ts'
import type { WatchedStream } from '../streams/streams.ts'
import type { Head } from './send-embedded.ts'

const stopping = () =>
  new Failure('shutting_down', 'The server is stopping and ended this stream. Send the request again in 5 s.', {
    retryAfterMs: 5_000,
  })

/** One record of a stream of server-sent events; `data` is text on one line, such as JSON. */
export interface SseRecord {
  data: string
  event?: string
  /** What the reader sends as `Last-Event-ID` when it reconnects. */
  id?: string
}

/** A record whose end other streams send too. `end` has the last bytes of its data and the blank line after it. */
export type SharedRecord = SseRecord & { end: Buffer }

const fieldsText = ({ id, event }: Omit<SseRecord, 'data'>) =>
  `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}`

export const sseText = (record: SseRecord): string => `${fieldsText(record)}data: ${record.data}\n\n`

/** The response head of an event stream. */
export const eventsHead: Head = [
  'text/event-stream; charset=utf-8',
  ['cache-control', 'no-cache', 'x-accel-buffering', 'no'],
]

/** Milliseconds that a reader waits before it reconnects. */
const reconnectMs = 2_000

/**
 * A comment that keeps the connection open. No blank line follows: it would end an event, and some readers (Python's
 * httpx-sse) then report one with empty data.
 */
export const pingComment = ': ping\n'

interface EventStreamOptions {
  /** Milliseconds of silence before a ping, if not the default of all streams. */
  pingMs?: number
  /** The request submitted the work that the stream reports: the stream continues even if its token is revoked. */
  generation?: boolean
  /** Returns what the reader gets last when the stream ends for this reason, instead of the usual event. */
  lastRecord?: (failure: Failure) => SseRecord
}

/**
 * Opens an event stream. Openings are paced, because a thousand at once would block all other requests; requests to an
 * `eventStream` route have waited already. Throws Failure `rate_limit` if the token or the organization has reached its
 * limit of streams, and `shutting_down` when the server stops.
 */
export async function openEventStream(exchange: ClientExchange, options: EventStreamOptions = {}) {
  if (exchange.streams.stopping && !options.generation)
    throw new Failure('shutting_down', 'The server is stopping and opens no event streams. Try again in 5 s.', {
      retryAfterMs: 5_000,
    })
  if (!options.generation) exchange.streamLimits.take(exchange)
  if (!exchange.route.eventStream) await exchange.streams.beforeOpening()
  return new EventStream(exchange, options)
}

/**
 * A response that is a stream of server-sent events, created by `openEventStream`. It queues nothing: writers check
 * `keepsUp` before the next record and wait for `caughtUp` if it is false. So a reader that stops reading costs only
 * its socket buffer, until it is cut at the write deadline. The watch over all streams pings it. It ends when the
 * reader disconnects, when its token loses its rights, and when the server begins to stop.
 */
export class EventStream implements WatchedStream {
  setIndex = -1
  blockedSince: number | undefined
  wroteAt = performance.now()
  readonly pingMs: number | undefined
  /** Resolves when the connection is closed by either side. */
  readonly over: Promise<void>
  readonly #res: ServerResponse
  readonly #lastRecord: EventStreamOptions['lastRecord']
  #onChange: (() => void) | undefined
  #begun = false

  constructor(exchange: ClientExchange, { pingMs, generation = false, lastRecord }: EventStreamOptions = {}) {
    const { res, streams } = exchange
    this.#res = res
    this.pingMs = pingMs
    this.#lastRecord = lastRecord
    exchange.head(200, ...eventsHead)
    streams.add(this)
    const unwatch = generation
      ? undefined
      : exchange.access.watch(exchange, failure => this.#refuse(failure, exchange.id))
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
      if (exchange.disconnected) end()
      else res.once('close', end)
    })
    if (exchange.req.method === 'HEAD') this.end()
    else res.flushHeaders()
  }

  /** Whether the stream has ended, here or by the reader. */
  get ended(): boolean {
    return this.#res.writableEnded || this.#res.destroyed
  }

  /** Whether the reader has read enough for more to be written. */
  get keepsUp(): boolean {
    return this.blockedSince === undefined
  }

  send(record: SseRecord): void {
    if (!this.ended) this.#write(`${this.#retry()}${sseText(record)}`)
  }

  /** Sends a record without copying its shared bytes. */
  sendShared(record: SharedRecord): void {
    if (this.ended) return
    this.#res.cork()
    this.#write(`${this.#retry()}${fieldsText(record)}data: ${record.data}`)
    this.#write(record.end)
    this.#res.uncork()
  }

  /** Sends whole events that are rendered already. */
  sendEvents(bytes: Buffer): void {
    if (!this.ended && bytes.length > 0) this.#write(bytes)
  }

  /** Resolves when the reader keeps up again, or when the stream has ended. Only one caller may wait at a time. */
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

  /** Ends the stream because the server stops. The reader reconnects and resumes from its last record. */
  dismiss(): void {
    if (this.ended) return
    const last = this.#lastRecord?.(stopping())
    if (last) this.send(last)
    else this.#write(': the server is stopping\n')
    this.end()
  }

  #refuse(failure: Failure, requestId: string): void {
    if (this.ended) return
    const last = this.#lastRecord?.(failure)
    if (last) this.send(last)
    else this.#write(accessEndEvent(failure, requestId))
    this.end()
  }

  end(): void {
    if (this.ended) return
    this.#res.end()
    // From here on the write deadline applies to reading the end.
    this.blockedSince ??= performance.now()
    this.#changed()
  }

  /** Returns the `retry` field for the first event. Sent alone, some clients report it as an event without data. */
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

/**
 * Returns the sequence after which a reader resumes, from `Last-Event-ID` or `?after=`. The header wins, because a
 * browser that reconnects repeats the old URL. Undefined without either.
 */
export function resumeFrom(exchange: ClientExchange): number | undefined {
  const header = exchange.req.headers['last-event-id']
  const given = typeof header === 'string' && header !== '' ? header : exchange.query.get('after')
  if (given === null) return undefined
  const sequence = /^evt_(\d{1,15})$/.exec(given)?.[1]
  if (sequence === undefined) throw invalid('after', `'after' must be the id of an event, such as \`evt_42\`.`)
  return Number(sequence)
}
