const form = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/**
 * Returns the value of a `traceparent` header (W3C Trace Context, 55 characters); undefined if it is absent or invalid: a
 * request is never refused for it. `tracestate` is not passed on.
 */
export const traceparentOf = (value: unknown): string | undefined =>
  typeof value === 'string' && form.test(value) ? value : undefined
