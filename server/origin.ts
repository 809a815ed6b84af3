import type { Call } from './call.ts'

/** What the addresses that are handed out for this request begin with. */
export const originOf = (call: Call): string => call.origin
