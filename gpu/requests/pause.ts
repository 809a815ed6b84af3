import type { IncomingHttpHeaders } from 'node:http'
import { Failure } from '../../core/failure.ts'
import { parseRetryAfter } from '../../core/retry-after.ts'
import { enginePaused } from '../residency/model-state.ts'

/** An engine that asks for more is asked again after this time, milliseconds. */
const maxPauseMs = 600_000

/** Statuses by which an engine says that it takes no requests for a while; 529 is that of Anthropic. */
const pausing: ReadonlySet<number> = new Set([429, 503, 529])

/** Google names the wait in the body: `"retryDelay": "17s"`. */
const bodyDelay = /"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d+)?)s"/

/**
 * Returns the milliseconds for which an engine wants no requests, by its refusal: from `retry-after-ms`, `Retry-After`
 * or the body. 0 if it names no time.
 */
export function requestedPauseMs(status: number, headers: IncomingHttpHeaders, body: string, now: number): number {
  if (!pausing.has(status)) return 0
  const { 'retry-after-ms': exact, 'retry-after': header } = headers
  const ms =
    (typeof exact === 'string' && Number(exact)) ||
    (parseRetryAfter(header, now) ?? Number(bodyDelay.exec(body)?.[1] ?? 0) * 1000)
  return ms > 0 ? Math.min(Math.ceil(ms), maxPauseMs) : 0
}

/** The failure of a request that an engine refused for this long. It never began, whatever the engine calls it. */
export const pauseRequested = (failure: Failure, modelId: string, retryAfterMs: number): Failure => {
  const { code, message, engineText } = failure
  const more = { retryAfterMs, askedByEngine: true, engineText }
  return code === 'model_warming_up'
    ? new Failure(code, message, more)
    : enginePaused(modelId, retryAfterMs, engineText)
}
