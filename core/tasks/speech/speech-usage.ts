import type { Usage } from '../../store/store.ts'

/** Returns the use of a text with so many characters: they are metered as input tokens. */
export const speechUsage = (characters: number): Usage => ({ inputTokens: characters, outputTokens: 0 })
