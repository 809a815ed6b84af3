/**
 * Why another model answers than the requested one: it failed before the first byte of an answer, the prompt is longer than
 * its context, or a request would wait too long for it.
 */
export const fallbackReasons = ['failed', 'context', 'wait'] as const
export type FallbackReason = (typeof fallbackReasons)[number]
