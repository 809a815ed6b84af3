import type { EngineCall } from '../core/models/fleet.ts'

/** The text of a body of JSON; undefined for one that is read as it is sent. */
export function textIn(body: EngineCall['body']): string | undefined {
  if (typeof body === 'string') return body
  if (!(body instanceof Uint8Array)) return undefined
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
}
