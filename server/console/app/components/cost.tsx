import { useSession } from '../api/client.ts'
import { costText } from './format.ts'

/** A cost with the currency of the configured prices. */
export const Cost = ({ of }: { of: number }) => costText(of, useSession().session.currency)
