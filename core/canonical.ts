import { createHash } from 'node:crypto'

/** Returns JSON text with the members of each object in alphabetical order, whatever order they were sent in. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_name, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

/** SHA-256 of a JSON value, in hex. Requests with the same idempotency key must have the same hash. */
export const canonicalHash = (value: unknown): string =>
  createHash('sha256')
    .update(canonical(value) ?? 'null')
    .digest('hex')
