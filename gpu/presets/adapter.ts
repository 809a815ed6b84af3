import type { EngineCall, EngineListener } from '../../core/models/fleet.ts'

/** A request in the form that one engine needs, and the listener that converts its answer back to the usual form. */
export interface AdaptedCall {
  call: EngineCall
  listener: EngineListener
}

/**
 * Changes requests that this engine cannot process as they are. Returns undefined for all others, after one search in
 * the body. Rejects with Failure for a request that cannot be converted.
 */
export type Adapter = (call: EngineCall, listener: EngineListener) => Promise<AdaptedCall> | undefined

/** Returns the text of a JSON body; undefined for a streamed body. */
export function bodyText(body: EngineCall['body']): string | undefined {
  if (typeof body === 'string') return body
  if (!(body instanceof Uint8Array)) return undefined
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
}
