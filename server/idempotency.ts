import { createHash } from 'node:crypto'
import { Failure } from '../core/failure.ts'
import type { Call } from './call.ts'

/** JSON text that does not depend on the order in which the members of an object were sent. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_name, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

/**
 * The `Idempotency-Key` of a request, folded with the endpoint that it is scoped to, and the hash of the body that it
 * stands for; null without one. Throws Failure `invalid_value`.
 */
export function idempotencyOf(call: Call, body: unknown): { key: string; bodyHash: string } | null {
  const given = call.req.headers['idempotency-key']
  if (given === undefined) return null
  if (typeof given !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(given))
    throw new Failure(
      'invalid_value',
      "'Idempotency-Key' must be 1 to 255 printable ASCII characters without spaces.",
      { param: 'Idempotency-Key' },
    )
  const { method, path } = call.route
  return { key: `${method} ${path} ${given}`, bodyHash: createHash('sha256').update(canonical(body)).digest('hex') }
}
