import { z } from 'zod'
import type { Month } from '../month.ts'

/** What an organization or a token has spent in a month, in millionths of the currency unit. */
export interface SpendReading {
  /** Of work that has ended. */
  spent: number
  /** The most that unfinished work can still cost. */
  held: number
  limit: number | null
  /** What is left of the limit, or of a token that created it if that is less, from 0; null if none has a limit. */
  remaining: number | null
  /** The month, epoch milliseconds. */
  period: Month
}

/** A reading with what remains of its limit. */
export const spendReading = (it: Omit<SpendReading, 'remaining'>): SpendReading => ({
  ...it,
  remaining: it.limit === null ? null : Math.max(0, it.limit - it.spent - it.held),
})

/** What is spent and held of a limit, as a reader gets it: currency units and Unix seconds. */
export const SpendView = z
  .object({
    monthly_limit: z.number().nullable().describe('Currency units per calendar month in UTC; null without a limit.'),
    spent: z.number().describe('Cost of the work that has ended this month.'),
    held: z.number().describe('The most that unfinished work can still cost.'),
    remaining: z
      .number()
      .nullable()
      .describe(
        'What is left of the limit, or of a token that created it if that is less, from 0; null if none has a limit.',
      ),
    period_start: z.int().describe('Start of the month, Unix seconds.'),
    period_end: z.int().describe('End of the month, Unix seconds, excluded.'),
  })
  .meta({ id: 'Spend', description: 'A monthly spend limit, and what is left of it.' })
export type SpendView = z.output<typeof SpendView>

const units = (micros: number): number => micros / 1e6

export const spendView = ({ spent, held, limit, remaining, period }: SpendReading): SpendView => ({
  monthly_limit: limit === null ? null : units(limit),
  spent: units(spent),
  held: units(held),
  remaining: remaining === null ? null : units(remaining),
  period_start: period.start / 1000,
  period_end: period.end / 1000,
})
