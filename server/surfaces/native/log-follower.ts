import type { ServerResponse } from 'node:http'
import type { Failure } from '../../../core/failure.ts'
import { pingComment } from '../../http/answer/sse.ts'
import type { Call } from '../../http/request/call.ts'
import { accessEndEvent } from '../../http/request/errors.ts'
import type { Owners } from '../../http/request/owners.ts'
import type { WatchedStream } from '../../http/streams/streams.ts'
import { type LogLine, lineOfEngine, lineOfServer } from '../../views/log-line.ts'

/** Bytes that may wait for a reader before lines are dropped. */
const maxBufferedBytes = 4 << 20

/**
 * A reader that follows the logs. A log never waits for a reader: if the reader lags by megabytes, lines are dropped,
 * and a `missed` event reports how many. A reader that reads nothing until the write deadline is cut.
 */
export class LogFollower implements WatchedStream {
  setIndex = -1
  blockedSince: number | undefined
  wroteAt = performance.now()
  /** Resolves when the reader disconnects or the server stops. */
  readonly over: Promise<void>
  readonly #res: ServerResponse
  readonly #wanted: (line: LogLine) => boolean
  #missed = 0

  constructor(call: Call, wanted: (line: LogLine) => boolean, { fleet, journal }: Pick<Owners, 'fleet' | 'journal'>) {
    const { streams } = call
    this.#res = call.res
    this.#wanted = wanted
    call.head(200, 'text/event-stream; charset=utf-8', ['cache-control', 'no-cache', 'x-accel-buffering', 'no'])
    call.res.flushHeaders()
    streams.add(this)
    const stops = [
      call.access.watch(call, failure => this.#refuse(failure, call.id)),
      fleet.output.follow(line => this.take(lineOfEngine(line))),
      journal.follow(line => this.take(lineOfServer(line))),
    ]
    call.res.on('drain', () => this.#caughtUp())
    this.over = new Promise(resolve => {
      const end = () => {
        for (const stop of stops) stop()
        streams.remove(this)
        resolve()
      }
      if (call.disconnected) end()
      else call.res.once('close', end)
    })
  }

  take(line: LogLine): void {
    if (!this.#wanted(line) || this.#res.writableEnded) return
    if (this.#res.writableLength > maxBufferedBytes) this.#missed++
    else this.#write(`data: ${JSON.stringify(line)}\n\n`)
  }

  ping(): void {
    if (!this.#res.writableEnded) this.#write(pingComment)
  }

  cut(): void {
    this.#res.destroy()
  }

  interrupt(): void {
    this.dismiss()
  }

  dismiss(): void {
    this.#end('event: end\ndata: {"reason":"the server is stopping"}\n\n')
  }

  #refuse(failure: Failure, requestId: string): void {
    this.#end(accessEndEvent(failure, requestId))
  }

  #end(last: string): void {
    if (this.#res.writableEnded) return
    this.#res.end(last)
    // From here on the write deadline applies to reading the end; a ping would be written after it.
    this.blockedSince ??= performance.now()
  }

  #caughtUp(): void {
    this.blockedSince = undefined
    const missed = this.#missed
    this.#missed = 0
    if (missed > 0 && !this.#res.writableEnded) this.#write(`event: missed\ndata: {"lines":${missed}}\n\n`)
  }

  #write(text: string): void {
    this.wroteAt = performance.now()
    if (!this.#res.write(text)) this.blockedSince ??= this.wroteAt
  }
}
