import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { ClientExchange } from '../http/request/exchange.ts'

/** The query of routes that answer at the end of what they have begun. */
export const Wait = z.strictObject({
  wait: z.coerce.number().min(0).max(120).default(1).describe('Seconds to wait for the end, 120 at most.'),
})

/**
 * Waits for the work at most this many seconds, and only while the client is connected. Throws what the work throws.
 */
export async function waitFor(seconds: number, work: Promise<void>, exchange: ClientExchange) {
  const done = new AbortController()
  // After the wait, errors are shown by the model's status.
  work.catch(() => undefined)
  const signal = AbortSignal.any([done.signal, exchange.signal])
  const time = delay(seconds * 1_000, undefined, { signal }).catch(() => undefined)
  await Promise.race([work, time]).finally(() => done.abort())
  exchange.signal.throwIfAborted()
}
