import { Failure } from '../../core/failure.ts'
import type { RunningCall } from '../../core/jobs/call.ts'
import { eventsHead } from '../http/answer/sse.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { StreamOutput } from '../http/streams/kept-stream.ts'
import type { WatchedStream } from '../http/streams/streams.ts'

interface WaitingStreamOptions {
  exchange: ClientExchange
  /** Where the stream is kept, so that comments reach whoever resumes it; absent: it is written to the client. */
  kept?: StreamOutput | undefined
  call: Pick<RunningCall, 'id'>
  /** Why it waits, as a sentence, and for how much longer, milliseconds; null where that is not known. */
  reason: () => { text: string | null; etaMs: number | null }
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
    const { exchange, kept, call, reason } = this.#options
    const { res } = exchange
    this.wroteAt = performance.now()
    if (!res.headersSent && !res.destroyed) {
      exchange.setHeader('x-job-id', call.id).head(200, ...eventsHead)
      res.on('drain', this.#onDrain)
    }
    const comment = waitingComment(reason())
    if (kept) kept.write(comment)
    else if (!res.destroyed && !res.write(comment)) this.blockedSince ??= this.wroteAt
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
}

/** As `pingComment`, without a blank line. The reason has no line breaks. */
function waitingComment({ text, etaMs }: ReturnType<WaitingStreamOptions['reason']>): string {
  const time = etaMs === null ? '' : ` (about ${Math.max(1, Math.round(etaMs / 1_000))} s)`
  return `: waiting${time}${text === null ? '' : ` ${text.replaceAll(/\s+/g, ' ')}`}\n`
}
