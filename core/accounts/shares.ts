import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import type { Plans } from './plans.ts'

/** How long the plans of organizations are cached: a change of an organization takes effect within this time. */
const cacheMs = 60_000

/**
 * The share of GPU time of each organization: its own, else that of its plan. Answered from memory; an unknown organization has the
 * smallest plan until the plans have been read again.
 */
export function openShares(options: {
  store: Pick<Store['organizations'], 'list'>
  plans: Pick<Plans, 'of'>
  log: Log
}) {
  const { store, plans, log } = options
  /** By organization: its own share, else its plan, whose share may change with the configuration. */
  let shares = new Map<string, number | string>()
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  function read(): Promise<void> {
    readAt = performance.now()
    return (reading ??= store
      .list()
      .then(
        all => {
          shares = new Map(all.map(({ id, plan, share }) => [id, share ?? plan]))
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
      return typeof known === 'string' ? plans.of(known).share : (known ?? 1)
    },
  }
}
