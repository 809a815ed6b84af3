import type { Schema } from '../api/schema.ts'

type Spend = Pick<Schema<'Spend'>, 'spent' | 'monthly_limit' | 'period_start' | 'period_end'>

/** Seconds of a month after which its spending says something about the rest. */
const leastSeconds = 86_400

export interface Forecast {
  /** What is spent at the end of the month if it goes on as until now, in three digits. */
  total: number
  /** Unix seconds at which the limit is reached; null if it is not reached in this month. */
  reachedAt: number | null
}

/** Returns the forecast of a month's spending; undefined in its first day, and while nothing is spent. `now`: Unix seconds. */
export function forecastOf(
  { spent, monthly_limit: limit, period_start: start, period_end: end }: Spend,
  now: number,
): Forecast | undefined {
  const elapsed = Math.min(now, end) - start
  if (elapsed < leastSeconds || spent === 0) return undefined
  const perSecond = spent / elapsed
  const total = perSecond * (end - start)
  const isReached = limit !== null && spent < limit && total >= limit
  return { total: Number(total.toPrecision(3)), reachedAt: isReached ? Math.round(start + limit / perSecond) : null }
}
