import type { IncomingMessage, ServerResponse } from 'node:http'
import { AbortSource } from '../../../core/abort-source.ts'
import type { Caller } from '../../../core/accounts/accounts.ts'
import { Failure } from '../../../core/failure.ts'
import { newId } from '../../../core/ids.ts'
import type { MediaInput, MediaSender } from '../../../core/media/media.ts'
import type { Config } from '../../../core/models/config.ts'
import type { SteadyTime } from '../../../core/steady-time.ts'
import type { SwapSetMember } from '../../../core/swap-set.ts'
import { traceparentOf } from '../../../core/trace-context.ts'
import type { AccessWatch } from '../access/access-watch.ts'
import { clientAddress, requestOrigin } from '../connection/forwarded.ts'
import { commonHeaders } from '../connection/head.ts'
import type { StreamLimits } from '../streams/stream-limits.ts'
import { type Streams, streamPieceBytes } from '../streams/streams.ts'
import type { AnyEndpoint } from './endpoint.ts'
import type { KeyLock } from './idempotency-records.ts'

const noFiles: ReadonlyMap<string, MediaInput> = new Map()
const noTexts: ReadonlyMap<string, string> = new Map()
const nothing = () => {}

interface ExchangeOptions {
  access: AccessWatch
  config: Pick<Config, 'public_url' | 'trusted_proxies'>
  steady: SteadyTime
  streamLimits: StreamLimits
  streams: Streams
}

/** One request of a client and its response: the caller, the route, and the only code that writes the response head. */
export class ClientExchange implements SwapSetMember {
  readonly id = newId('req')
  readonly startedAt = performance.now()
  readonly req: IncomingMessage
  /** The secret of the request, or the credential of its session; undefined if it has none. */
  readonly credential: string | undefined
  readonly res: ServerResponse
  readonly route: AnyEndpoint
  readonly params: Record<string, string>
  /** Watches all streams. */
  readonly streams: Streams
  readonly steady: SteadyTime
  /** Watches the tokens of responses that stay open. */
  readonly access: AccessWatch
  /** Bounds the event streams of its token and organization. */
  readonly streamLimits: StreamLimits
  /** Index in the set of running requests. */
  setIndex = -1
  readonly #publicUrl: string | undefined
  readonly #proxies: readonly string[]
  #caller: Caller | undefined
  #headers: string[]
  #abortSource: AbortSource | undefined
  #controller: AbortController | undefined
  #outlivesClient = false
  /** The hash of the body as it was sent; set if the body was hashed when it was read. */
  bodyHash: string | undefined
  /** Files that were sent in or with the body, by the short address that replaces them in the body. */
  inline: ReadonlyMap<string, MediaInput> = noFiles
  /** Members of a large body as JSON text; an empty object replaces them in the body. */
  texts: ReadonlyMap<string, string> = noTexts
  /** The lock of its idempotency key, undefined before it is taken. Releasing it again has no effect. */
  keyLock: KeyLock | undefined
  /** Reduces the memory counted for the body to `keep` bytes, 0 by default; set while the body is counted. */
  releaseBody: (keep?: number) => void = nothing
  /** Ends the request for the limits of concurrent requests; set while it counts. */
  leaveLimits: () => void = nothing

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    route: AnyEndpoint,
    params: Record<string, string>,
    credential: string | undefined,
    { access, config, steady, streamLimits, streams }: ExchangeOptions,
  ) {
    this.credential = credential
    this.req = req
    this.res = res
    this.route = route
    this.params = params
    this.streams = streams
    this.steady = steady
    this.access = access
    this.streamLimits = streamLimits
    this.#publicUrl = config.public_url
    this.#proxies = config.trusted_proxies
    this.#headers = commonHeaders(req, this.id)
  }

  /** Throws for a public route, which has no caller. */
  get caller(): Caller {
    if (!this.#caller) throw new Error(`${this.route.path} has no caller`)
    return this.#caller
  }
  set caller(caller: Caller) {
    this.#caller = caller
  }
  get organizationId(): string | undefined {
    return this.#caller?.organizationId
  }

  /**
   * The origin of all URLs in answers: `public_url` if the operator has set it, else the address that this request was
   * sent to, as a trusted proxy reports it (the host was checked before). Some clients load nothing from other private
   * hosts.
   */
  get origin(): string {
    return this.#publicUrl?.replace(/\/+$/, '') ?? requestOrigin(this.req, this.#proxies)
  }

  /** The client's address, as a trusted proxy reports it. */
  get clientAddress(): string {
    return clientAddress(this.req, this.#proxies)
  }

  /** The trace that the request belongs to, as its client says; undefined without a valid one. */
  get traceparent(): string | undefined {
    return traceparentOf(this.req.headers.traceparent)
  }

  /** The query string's parameters. */
  get query(): URLSearchParams {
    const url = this.req.url ?? ''
    const at = url.indexOf('?')
    return new URLSearchParams(at < 0 ? '' : url.slice(at + 1))
  }

  /** Aborted when the client disconnects, or the server stops, before the response is complete. */
  get abortSource(): AbortSource {
    if (!this.#abortSource) {
      const source = (this.#abortSource = new AbortSource())
      const abort = () => {
        if (!this.res.writableFinished && !this.#outlivesClient)
          source.abort(new Failure('cancelled', 'The client disconnected before the answer was complete.'))
      }
      if (this.res.destroyed) abort()
      else this.res.on('close', abort)
    }
    return this.#abortSource
  }

  /** `abortSource` as an AbortSignal. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = (this.#controller = new AbortController())
      const source = this.abortSource
      if (source.aborted) controller.abort(source.reason)
      else source.addEventListener('abort', () => controller.abort(source.reason))
    }
    return this.#controller.signal
  }

  /** The sender of the media of this request. Fetching stops when the client disconnects. */
  get sender(): MediaSender {
    return { organizationId: this.caller.organizationId, origin: this.origin, signal: this.signal }
  }

  /** Whether the client has disconnected. */
  get disconnected(): boolean {
    return this.res.destroyed || this.req.socket.destroyed
  }

  /** From now on a disconnect does not abort the work; `stop` still does. */
  outliveClient(): void {
    this.#outlivesClient = true
  }

  /** Aborts the work of the request with this reason while the client is still connected. */
  stop(reason: Failure): void {
    this.abortSource.abort(reason)
  }

  /** Milliseconds since the request arrived. */
  get elapsedMs(): number {
    return performance.now() - this.startedAt
  }

  /** Adds a response header. Its value must not come from the client. */
  header(name: string, value: string): this {
    this.#headers.push(name, value)
    return this
  }

  /** Adds a response header, in place of an earlier one of this name. Its value must not come from the client. */
  setHeader(name: string, value: string): this {
    const at = this.#headers.indexOf(name)
    if (at < 0) this.#headers.push(name, value)
    else this.#headers[at + 1] = value
    return this
  }

  /** Adds response headers, flat. Their values must not come from the client. */
  addHeaders(headers: readonly string[]): void {
    this.#headers.push(...headers)
  }

  /** Tells the client to ask again after two seconds, because the work has not ended. */
  pollAgain(): void {
    this.#headers.push('retry-after', '2', 'retry-after-ms', '2000', 'openai-poll-after-ms', '2000')
  }

  /** Writes the status line and headers. The body is written to `res` afterwards. */
  head(status: number, contentType: string, more: readonly string[] = []): void {
    this.route.addAnswerHeaders?.(this.#headers, this)
    this.#headers.push('content-type', contentType)
    if (more.length > 0) this.#headers.push(...more)
    this.res.writeHead(status, this.#headers)
  }

  /** Writes a whole response. Does nothing when the client has disconnected or a response has begun. */
  send(
    status: number,
    body: string | Uint8Array,
    contentType = 'application/json',
    more: readonly string[] = [],
  ): void {
    if (this.res.headersSent || this.res.destroyed) return
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength
    // Text with one byte per character is ASCII; latin1 is the encoding that Node writes fastest.
    const encoding = length === body.length ? 'latin1' : 'utf8'
    this.#headers.push('content-length', String(length))
    this.head(status, contentType, more)
    if (this.req.method === 'HEAD') this.res.end()
    else {
      // An error ends at once: what has begun and not ended is taken for an event stream.
      if (status >= 400) this.res.end(body, encoding)
      else if (length <= streamPieceBytes) this.streams.send(this.res, body, encoding)
      else this.streams.sendLarge(this.res, typeof body === 'string' ? Buffer.from(body, encoding) : body)
    }
  }
}
