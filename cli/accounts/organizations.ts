import type { Organization } from '../../core/store/store.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'

/** Chooses the organization. An id takes precedence over a name. */
export function chooseOrganization<T extends Pick<Organization, 'id' | 'name'>>(
  all: readonly T[],
  idOrName: string | undefined,
): T {
  if (all.length === 0)
    throw refused(
      'not_found',
      'There is no organization yet. Start the server once with "infer serve", or create one with "infer org create <name>".',
    )
  if (idOrName === undefined) {
    const only = all.length === 1 ? all[0] : all.find(({ name }) => name === 'default')
    if (only) return only
    throw usageFailure(`There are ${all.length} organizations. Choose one with --org: ${names(all)}.`)
  }
  const found = all.find(({ id }) => id === idOrName) ?? all.find(({ name }) => name === idOrName)
  if (found) return found
  throw refused('not_found', `There is no organization '${idOrName}'. Available: ${names(all)}.`)
}

const names = (all: readonly Pick<Organization, 'name'>[]): string =>
  all.length > 10
    ? `${all
        .slice(0, 10)
        .map(({ name }) => name)
        .join(', ')} and ${all.length - 10} more`
    : all.map(({ name }) => name).join(', ')
