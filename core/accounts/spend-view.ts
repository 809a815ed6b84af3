import type { OrganizationLimits } from '../store/store.ts'
import { startOfMonth, startOfNextMonth } from './usage-window.ts'

/** The monthly limit of an organization and what it has spent, in currency units; times in Unix seconds. */
export interface SpendView {
  monthly_limit: number | null
  spent: number
  remaining: number | null
  period_start: number
  period_end: number
  hard: boolean
}

/** The state of the monthly limit. `spent` is the cost of the work that has finished this calendar month in UTC. */
export function spendView(
  { monthlySpendLimit }: Pick<OrganizationLimits, 'monthlySpendLimit'>,
  spent: number,
  now: number,
): SpendView {
  const limit = monthlySpendLimit === null ? null : monthlySpendLimit / 1e6
  return {
    monthly_limit: limit,
    spent,
    remaining: limit === null ? null : Math.max(0, Math.round((limit - spent) * 1e6) / 1e6),
    period_start: startOfMonth(Math.floor(now / 1000)),
    period_end: startOfNextMonth(Math.floor(now / 1000)),
    hard: true,
  }
}
