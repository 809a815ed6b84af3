import type { EngineCall } from '../../core/models/fleet.ts'

/** Returns the text of a JSON body; undefined for a streamed body. */
export function bodyText(body: EngineCall['body']): string | undefined {
  if (typeof body === 'string') return body
  if (!(body instanceof Uint8Array)) return undefined
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
}
