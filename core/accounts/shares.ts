import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { shareOfPlan } from './plan.ts'

/** How long the plans are cached: a change takes effect within this time. */
const cacheMs = 60_000

/**
 * The share of GPU time of each organization, by its plan. Answered from memory; an unknown organization has the
 * smallest plan until the plans have been read again.
 */
export function openShares({ store, log }: { store: Pick<Store['organizations'], 'list'>; log: Log }) {
  let shares = new Map<string, number>()
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  function read(): Promise<void> {
    readAt = performance.now()
    return (reading ??= store
      .list()
      .then(
        all => {
          shares = new Map(all.map(({ id, plan, share }) => [id, share ?? shareOfPlan(plan)]))
        },
        (thrown: unknown) => log.warn('The plans of the organizations could not be read', {}, thrown),
      )
      .finally(() => {
        reading = undefined
      }))
  }

  return {
    /** Reads the plans; resolves when they are known. */
    read,
    of(organizationId: string): number {
      const known = shares.get(organizationId)
      const age = performance.now() - readAt
      // An organization that was just created is looked up at once, but at most once a second.
      if (age > cacheMs || (known === undefined && age > 1_000)) void read()
      return known ?? 1
    },
  }
}
export type Shares = ReturnType<typeof openShares>
