/** The part of a limit above which it needs attention. */
const nearLimit = 0.8

/** How a limit stands; a limit of 0 allows nothing, and needs no attention for that. */
export const limitState = (used: number, limit: number): 'free' | 'near' | 'reached' =>
  limit <= 0 || used < nearLimit * limit ? 'free' : used < limit ? 'near' : 'reached'

/** The used part of a limit in whole percent, at most 100. */
export const percentUsed = (used: number, limit: number): number =>
  limit > 0 ? Math.min(100, Math.floor((100 * used) / limit)) : 0
