import { EventEmitter } from 'node:events'
import type { ClientExchange } from '../../server/http/request/exchange.ts'
import { openStreams } from '../../server/http/streams/streams.ts'

/** An exchange whose response keeps everything written to it. */
export function openExchange() {
  const written: string[] = []
  const res = Object.assign(new EventEmitter(), {
    writableEnded: false,
    destroyed: false,
    writableLength: 0,
    flushHeaders: () => undefined,
    cork: () => undefined,
    uncork: () => undefined,
    write: (bytes: string | Buffer) => written.push(bytes.toString()) > 0,
    end(bytes = '') {
      written.push(bytes)
      res.writableEnded = true
      res.emit('close')
    },
  })
  const exchange = {
    id: 'req_1',
    res,
    req: { method: 'GET' },
    disconnected: false,
    head: () => undefined,
    streams: openStreams({ pingMs: 60_000, writeDeadlineMs: 60_000 }),
    access: { watch: () => () => undefined },
    streamLimits: { take: () => undefined },
    route: { eventStream: true },
  } as unknown as ClientExchange
  return { exchange, text: () => written.join('') }
}
