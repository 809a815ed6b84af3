import type { OrganizationView } from '../../core/accounts/organization-view.ts'
import type { UserView } from '../../core/accounts/user-view.ts'
import { dataDirectory, remoteServer } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import type { Organization } from '../../core/store/store.ts'
import { allPages, type Client, dataOf, memberOf, openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'

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

interface ChoiceOptions {
  /** Whether a deleted one is found by its id: its usage and its audit log are kept. */
  mayBeDeleted?: boolean
  /** How the command names an organization, for the message. */
  option?: string
}

/** Finds the organization with this id or name; without one, the only organization. */
export async function organizationFor(
  client: Client,
  idOrName: string | undefined,
  { mayBeDeleted = true, option }: ChoiceOptions = {},
): Promise<OrganizationView> {
  const all = (await organizationsOf(client)).toReversed()
  const present = all.filter(({ status }) => status !== 'deleted')
  return (
    (mayBeDeleted ? all : present).find(({ id }) => id === idOrName) ?? chooseOrganization(present, idOrName, option)
  )
}

/**
 * Returns the id of the organization with this id or name; without one, that of the only organization that the client
 * reaches. A server is not asked about an id.
 */
export async function organizationIdFor(
  client: Client,
  idOrName: string | undefined,
  options?: ChoiceOptions,
): Promise<string> {
  if (idOrName === undefined) return chooseOrganization(await reachedOrganizations(client), idOrName).id
  if (!client.isInProcess && idOrName.startsWith('org_')) return idOrName
  return (await organizationFor(client, idOrName, options)).id
}

/**
 * The organizations that the client may act for, oldest first: on this machine all, at a server that of its token. A
 * token of the organization that owns the machine reaches all, if it may list them.
 */
export async function reachedOrganizations(
  client: Client,
  { mayBeDeleted = false } = {},
): Promise<Pick<OrganizationView, 'id' | 'name'>[]> {
  try {
    const all = (await organizationsOf(client)).toReversed()
    return all.filter(({ status }) => mayBeDeleted || status !== 'deleted')
  } catch (thrown) {
    if (client.isInProcess || !(thrown instanceof Failure) || thrown.code !== 'insufficient_scope') throw thrown
    return [await ownOrganization(client)]
  }
}

/** The names of all organizations that the client reaches, by id. */
export const organizationNames = async (client: Client): Promise<Map<string, string>> =>
  new Map(
    (await reachedOrganizations(client, { mayBeDeleted: true })).map(({ id, name }) => [id, printable(name)] as const),
  )

/** The organization of the client's token. */
export const ownOrganization = ({ api }: Client) => memberOf(api.GET('/api/me'), 'organization')

/** Finds the user with this id or e-mail address. */
export async function userFor(client: Client, organization: string, idOrEmail: string): Promise<UserView> {
  const users = await usersOf(client, organization)
  const found = users.find(({ id, email }) => id === idOrEmail || email === idOrEmail.toLowerCase())
  if (!found) throw refused('not_found', `There is no user '${idOrEmail}' here. See: infer user list`)
  return found
}

export const noOrganization = (): Failure =>
  refused(
    'not_found',
    'There is no organization yet. Start the server once with "infer serve", or create one with "infer org create <name>".',
  )

/** Chooses the organization. An id takes precedence over a name. Throws usage if there are several and none is named. */
export function chooseOrganization<T extends Pick<Organization, 'id' | 'name'>>(
  all: readonly T[],
  idOrName: string | undefined,
  option = '--org',
): T {
  if (all.length === 0) throw noOrganization()
  if (idOrName === undefined) {
    if (all.length === 1) return all[0]!
    throw usageFailure(`There are ${all.length} organizations. Choose one with ${option}: ${names(all)}.`)
  }
  const found = all.find(({ id }) => id === idOrName) ?? all.find(({ name }) => name === idOrName)
  if (found) return found
  throw refused('not_found', `There is no organization '${idOrName}'. Available: ${names(all)}.`)
}

const names = (all: readonly Pick<Organization, 'name'>[]): string =>
  `${all
    .slice(0, 10)
    .map(({ name }) => printable(name))
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
