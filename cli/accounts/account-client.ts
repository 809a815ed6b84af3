import type { OrganizationView } from '../../core/accounts/organization-view.ts'
import type { UserView } from '../../core/accounts/user-view.ts'
import { dataDirectory, remoteServer } from '../../core/config.ts'
import type { Organization } from '../../core/store/store.ts'
import { allPages, type Client, dataOf, memberOf, openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'

/** All organizations, newest first. The token needs the scope admin:read. */
export const organizationsOf = ({ api }: Client): Promise<OrganizationView[]> =>
  allPages(async (after, limit) => {
    const page = await dataOf(api.GET('/api/organizations', { params: { query: { limit, after } } }))
    return { ...page, entries: page.organizations }
  })

/** The users of an organization, newest first. */
export const usersOf = ({ api }: Client, organization: string): Promise<UserView[]> =>
  allPages(async (after, limit) => {
    const params = { path: { organization }, query: { limit, after } }
    const page = await dataOf(api.GET('/api/organizations/{organization}/members', { params }))
    return { ...page, entries: page.users }
  })

/** The query of a request that is forced, as a part of its parameters. */
export const forced = (force: boolean | undefined) => (force ? { query: { force: 'true' } as const } : {})

/**
 * Finds the organization with this id or name; without one, the only organization or the one named `default`. A deleted
 * one is found by its id if it may be deleted: its usage and its audit log are kept.
 */
export async function organizationFor(
  client: Client,
  idOrName: string | undefined,
  { mayBeDeleted = true } = {},
): Promise<OrganizationView> {
  const all = (await organizationsOf(client)).toReversed()
  const present = all.filter(({ status }) => status !== 'deleted')
  return (mayBeDeleted ? all : present).find(({ id }) => id === idOrName) ?? chooseOrganization(present, idOrName)
}

/**
 * Returns the id of the organization with this id or name. Without one: at a server that of the client's token, on this
 * machine as `organizationFor`. A server is not asked about an id.
 */
export async function organizationIdFor(
  client: Client,
  idOrName: string | undefined,
  options?: { mayBeDeleted: boolean },
): Promise<string> {
  if (!client.isInProcess && idOrName === undefined) return (await ownOrganization(client)).id
  if (!client.isInProcess && idOrName?.startsWith('org_')) return idOrName
  return (await organizationFor(client, idOrName, options)).id
}

/** The organization of the client's token. */
export const ownOrganization = ({ api }: Client) => memberOf(api.GET('/api/me'), 'organization')

/** Finds the user with this id or e-mail address. */
export async function userFor(client: Client, organization: string, idOrEmail: string): Promise<UserView> {
  const users = await usersOf(client, organization)
  const found = users.find(({ id, email }) => id === idOrEmail || email === idOrEmail.toLowerCase())
  if (!found) throw refused('not_found', `There is no user '${idOrEmail}' here. See: infer user list`)
  return found
}

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
  `${all
    .slice(0, 10)
    .map(({ name }) => name)
    .join(', ')}${all.length > 10 ? ` and ${all.length - 10} more` : ''}`

/**
 * Runs work with the server at INFER_URL, else with the same routes in this process, on the data directory. `stopsWork`:
 * with a server that runs on this machine instead, because only the server can stop what it runs. `readsUsage`: with the
 * routes of usage and organizations, which need no master key.
 */
export async function withClient<T>(
  dataDir: string | undefined,
  work: (client: Client) => Promise<T>,
  { stopsWork = false, readsUsage = false } = {},
): Promise<T> {
  const folder = dataDirectory(dataDir)
  if (remoteServer() || (stopsWork && runningServer(folder))) return work(openClient(folder))
  const { openInProcess, openUsageInProcess } = await import('./in-process.ts')
  const { client, close } = await (readsUsage ? openUsageInProcess : openInProcess)(folder)
  try {
    return await work(client)
  } finally {
    await close()
  }
}
