import type { ServerResponse } from 'node:http'
import { z } from 'zod'
import { type Failure, invalid } from '../../../core/failure.ts'
import { array, namedObject, optionalOneOf, optionalStringUpTo } from '../../../core/schemas/fields.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { requireMachineOwner } from '../../http/access/reach.ts'
import { eventsHead, pingComment } from '../../http/answer/sse.ts'
import { accessEndEvent } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import type { WatchedStream } from '../../http/streams/streams.ts'
import { LogLine, lineOfEngine, lineOfServer } from '../../views/log-line.ts'

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

  constructor(
    exchange: ClientExchange,
    wanted: (line: LogLine) => boolean,
    { fleet, journal }: Owners<'fleet' | 'journal'>,
  ) {
    const { streams } = exchange
    this.#res = exchange.res
    this.#wanted = wanted
    exchange.head(200, ...eventsHead)
    exchange.res.flushHeaders()
    streams.add(this)
    const stops = [
      exchange.access.watch(exchange, failure => this.#refuse(failure, exchange.id)),
      fleet.output.follow(line => this.take(lineOfEngine(line))),
      journal.follow(line => this.take(lineOfServer(line))),
    ]
    exchange.res.on('drain', () => this.#caughtUp())
    this.over = new Promise(resolve => {
      const end = () => {
        for (const stop of stops) stop()
        streams.remove(this)
        resolve()
      }
      if (exchange.disconnected) end()
      else exchange.res.once('close', end)
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

const route = routeOf({ tag: 'System' })
const maxLines = 10_000

const Query = z.strictObject({
  model: optionalStringUpTo(256, 'Only lines that concern this model.'),
  source: optionalOneOf('Only lines of the server, or only lines of engines. Default: both.', ['server', 'engine']),
  lines: z.coerce.number().int().min(0).max(maxLines).default(200).describe('How many of the newest lines to return.'),
  follow: z
    .enum(['true', 'false'])
    .default('false')
    .transform(text => text === 'true')
    .describe('Whether to stay connected and send further lines as server-sent events.'),
})
type Query = z.output<typeof Query>

const LogLines = namedObject('LogLines', 'Lines of the logs.', { lines: array('The lines, oldest first.', LogLine) })

function matches({ model, source }: Query): (line: LogLine) => boolean {
  return line => (model === undefined || line.model_id === model) && (source === undefined || line.source === source)
}

type LogOwners = Owners<'fleet' | 'journal' | 'registry'>

/** Returns the newest requested lines of both logs, oldest first. Reads no more, because this blocks the event loop. */
function recent(query: Query, { fleet, journal, registry }: LogOwners): LogLine[] {
  const { model, source, lines: count } = query
  if (count === 0) return []
  const concerning = model === undefined ? '' : JSON.stringify(model)
  const ofServer =
    source === 'engine'
      ? []
      : journal
          .recent()
          .filter(line => line.includes(concerning))
          .slice(model === undefined ? -count : 0)
          .map(lineOfServer)
  const ofEngines = source === 'server' ? [] : fleet.output.recent(model, count).map(lineOfEngine)
  const wanted = [...ofServer, ...ofEngines].filter(matches(query))
  if (wanted.length === 0 && model !== undefined && !registry.find(model))
    throw invalid('model', `There is no model '${model}' here.`, 'model_not_found')
  return wanted.toSorted((one, other) => (one.time < other.time ? -1 : one.time > other.time ? 1 : 0)).slice(-count)
}

export const logRoutes = (owners: LogOwners) => [
  route('GET /api/system/logs', 'admin:read', {
    summary: 'List log lines of server',
    description:
      'Returns the newest lines of the log of the server and of its engines. Only for tokens of the organization that owns the machine. About 1 MB of the server and of each engine is kept, in memory. Secrets are masked. With `?follow=true` each line is a server-sent event, and new lines follow as they are written; a reader that is too slow misses lines and gets their number in a `missed` event. If the token is revoked, expires or loses the scope, the stream ends within 2 s with an `error` event.',
    events: 'LogLine',
    errorCodes: ['organization_mismatch', 'model_not_found'],
    query: Query,
    response: LogLines,
    answer(exchange) {
      // Output of engines may contain prompts of any organization, and the server's log names all organizations.
      requireMachineOwner(exchange, 'The logs of this server are')
      const query = parsed(Query, Object.fromEntries(exchange.query))
      const lines = recent(query, owners)
      if (!query.follow) return exchange.send(200, JSON.stringify({ lines }))
      exchange.streamLimits.take(exchange)
      const follower = new LogFollower(exchange, matches(query), owners)
      for (const line of lines) follower.take(line)
      return follower.over
    },
  }),
]
