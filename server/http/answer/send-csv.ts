import { once } from 'node:events'
import type { ClientExchange } from '../request/exchange.ts'

/**
 * Sends a CSV file part by part, as fast as the client reads it. A client that stops reading is cut off like that of
 * any stream. Throws what the first part throws; a later failure cuts the connection, so that half a file is no success.
 */
export async function sendCsv(exchange: ClientExchange, parts: AsyncGenerator<string>, name: string): Promise<void> {
  const { res, streams } = exchange
  const first = await parts.next()
  if (res.destroyed) return
  exchange.head(200, 'text/csv; charset=utf-8; header=present', [
    'content-disposition',
    `attachment; filename="${name}"`,
  ])
  if (exchange.req.method === 'HEAD') {
    res.end()
    return
  }
  const watched = {
    setIndex: -1,
    blockedSince: undefined as number | undefined,
    wroteAt: performance.now(),
    pingMs: Number.POSITIVE_INFINITY,
    ping() {},
    cut: () => void res.destroy(),
    interrupt: () => void res.destroy(),
  }
  streams.add(watched)
  try {
    for (let part = first; !part.done; part = await parts.next()) {
      if (res.destroyed) return
      if (part.value === '' || res.write(part.value)) continue
      watched.blockedSince = performance.now()
      await once(res, 'drain', { signal: exchange.signal })
      watched.blockedSince = undefined
    }
    res.end()
  } catch {
    res.destroy()
  } finally {
    streams.remove(watched)
    await parts.return(undefined)
  }
}
