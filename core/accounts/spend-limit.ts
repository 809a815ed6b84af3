import type { OrganizationLimits, Plan } from '../store/store.ts'

/**
 * The monthly spend limit of an organization, millionths of the currency unit: its own, or that of its plan; null
 * without one.
 */
export const spendLimitOf = ({ monthlySpendLimit }: Pick<OrganizationLimits, 'monthlySpendLimit'>, _plan: Plan) =>
  monthlySpendLimit
