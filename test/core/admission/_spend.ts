import { openPlans } from '../../../core/accounts/plans.ts'
import { openSpend } from '../../../core/admission/spend.ts'
import type { Spender } from '../../../core/admission/spender.ts'
import { Failure } from '../../../core/failure.ts'
import { keptLog, openTestStore, organizationId } from '../store/_store.ts'

export const day = 86_400_000
const today = new Date()
const firstOfMonth = (later: number) => Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + later)
/** When the current month, the next one and the one after it begin: a store that starts books what was left by its own clock. */
export const [month, nextMonth, monthAfter] = [firstOfMonth(0), firstOfMonth(1), firstOfMonth(2)]
/** The last day of this month, 12:00 UTC. */
export const start = nextMonth - day / 2

/** A store, and the spending of its organizations by a clock that the test sets. `open`: reads the store again. */
export async function opened(storeOptions: Parameters<typeof openTestStore>[0] = {}) {
  const opened = await openTestStore(storeOptions)
  const clock = { at: start, now: () => clock.at }
  const { log } = keptLog()
  const plans = openPlans({ configured: {}, log })
  const open = () => openSpend({ store: opened.store, plans, currency: 'EUR', log, clock })
  const spend = await open()
  return { ...opened, clock, open, spend }
}

export const who = (more: Partial<Spender> = {}): Spender => ({
  organizationId,
  originId: 'tok_test',
  tokenName: 'laptop',
  organizationLimit: null,
  tokenLimit: null,
  parents: [],
  ...more,
})
export const bill = (cost: number, finishedAt = start) => ({ organizationId, tokenId: 'tok_test', cost, finishedAt })

export function refusal(work: () => void): Failure | undefined {
  try {
    work()
    return undefined
  } catch (thrown) {
    return Failure.from(thrown)
  }
}
