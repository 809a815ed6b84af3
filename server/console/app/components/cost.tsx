import { useSession } from '../api/client.ts'
import { costText } from './format.ts'

/** Returns how a cost is written, with the currency of the configured prices. */
export function useCostText(): (cost: number) => string {
  const { currency } = useSession().session
  return cost => costText(cost, currency)
}

/** A cost with its currency. */
export const Cost = ({ of }: { of: number }) => useCostText()(of)
