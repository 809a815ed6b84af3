import type { Month } from '../month.ts'

/** What an organization or a token has spent in a month, in millionths of the currency unit. */
export interface SpendReading {
  /** Of work that has ended. */
  spent: number
  /** The most that unfinished work can still cost. */
  held: number
  limit: number | null
  /** The limit less both, at least 0; null without a limit. */
  remaining: number | null
  /** The month, epoch milliseconds. */
  period: Month
}

/** A reading with what remains of its limit. */
export const spendReading = (it: Omit<SpendReading, 'remaining'>): SpendReading => ({
  ...it,
  remaining: it.limit === null ? null : Math.max(0, it.limit - it.spent - it.held),
})
