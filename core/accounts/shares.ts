import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { planShares } from './plan.ts'

/** How long a plan is taken at its word: a change of it counts within this time. */
const trustMs = 60_000

/**
 * The share of the GPUs that each organization has, by its plan. Answered from memory; an organization that is not
 * known yet counts as one of the smallest plan until it has been looked up.
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
          shares = new Map(all.map(({ id, plan }) => [id, planShares[plan]]))
        },
        (thrown: unknown) => log.warn('The plans of the organizations could not be read', {}, thrown),
      )
      .finally(() => {
        reading = undefined
      }))
  }

  return {
    /** Resolves when they are known. */
    read,
    of(organizationId: string): number {
      const known = shares.get(organizationId)
      const age = performance.now() - readAt
      // One that was made a moment ago is looked for at once, but not again and again.
      if (age > trustMs || (known === undefined && age > 1_000)) void read()
      return known ?? planShares.free
    },
  }
}
export type Shares = ReturnType<typeof openShares>
