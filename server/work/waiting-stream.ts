import { Failure } from '../../core/failure.ts'
import type { RunningCall } from '../../core/jobs/call.ts'
import { eventsHead } from '../http/answer/sse.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { WatchedStream } from '../http/streams/streams.ts'

interface WaitingStreamOptions {
  exchange: ClientExchange
  call: Pick<RunningCall, 'id'>
  /** Why it waits, as a sentence, and for how much longer, milliseconds; null where that is not known. */
  reason: () => { text: string | null; etaMs: number | null }
  /** What the client gets last when the request fails, in its form. */
  lastWords: (failure: Failure) => string
}

/**
 * An event stream whose request waits for a slot. After the usual silence it gets its head and a comment, and then a comment
 * as often as any silent stream, so that no proxy closes the connection. Until then a refusal is answered with its status.
 */
export class WaitingStream implements WatchedStream {
  setIndex = -1
  blockedSince: number | undefined
  wroteAt = performance.now()
  readonly #options: WaitingStreamOptions
  readonly #onDrain = () => {
    this.blockedSince = undefined
  }

  constructor(options: WaitingStreamOptions) {
    this.#options = options
    options.exchange.streams.add(this)
  }

  ping(): void {
    const { exchange, call, reason } = this.#options
    const { res } = exchange
    this.wroteAt = performance.now()
    // The request may outlive its client.
    if (res.destroyed) return
    if (!res.headersSent) {
      exchange.header('x-job-id', call.id).head(200, ...eventsHead)
      res.on('drain', this.#onDrain)
    }
    if (!res.write(waitingComment(reason())) && this.blockedSince === undefined) this.blockedSince = this.wroteAt
  }

  cut(): void {
    this.end()
    this.#options.exchange.res.destroy()
  }

  interrupt(): void {
    this.#options.exchange.stop(new Failure('shutting_down', 'The server is stopping. Send the request again in 5 s.'))
  }

  /** The request no longer waits. */
  end(): void {
    const { res, streams } = this.#options.exchange
    streams.remove(this)
    res.off('drain', this.#onDrain)
  }

  /** The request has failed before its answer began. Answers it if a comment was sent; otherwise others answer. */
  failed(failure: Failure): void {
    this.end()
    const { exchange, lastWords } = this.#options
    const { res } = exchange
    if (res.headersSent && !res.writableEnded && !exchange.disconnected) res.end(lastWords(failure))
  }
}

/** As `pingComment`, without a blank line. The reason has no line breaks. */
function waitingComment({ text, etaMs }: ReturnType<WaitingStreamOptions['reason']>): string {
  const time = etaMs === null ? '' : ` (about ${Math.max(1, Math.round(etaMs / 1_000))} s)`
  return `: waiting${time}${text === null ? '' : ` ${text.replaceAll(/\s+/g, ' ')}`}\n`
}
