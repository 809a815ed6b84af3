import { createHash } from 'node:crypto'

/** JSON text that does not depend on the order in which the members of an object were sent. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_name, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

/** SHA-256 of a JSON value, in hex: what an idempotency key stands for. */
export const canonicalHash = (value: unknown): string =>
  createHash('sha256')
    .update(canonical(value) ?? 'null')
    .digest('hex')
