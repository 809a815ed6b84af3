import type { AuditEntryView } from '../../core/accounts/audit-view.ts'
import type { OrganizationLimitsChange, OrganizationView } from '../../core/accounts/organization-view.ts'
import { UserChange, UserCreate, type UserView } from '../../core/accounts/user-view.ts'
import { dataDirectory, remoteServer } from '../../core/config.ts'
import { newId } from '../../core/ids.ts'
import type { Organization, Role } from '../../core/store/store.ts'
import { allPages, type Client, dataOf, memberOf, openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'

/** Fields of an organization to create or change. */
interface OrganizationFields {
  name?: string | undefined
  plan?: string | undefined
  region?: string | null | undefined
  share?: number | null | undefined
  limits?: OrganizationLimitsChange | undefined
}

interface UserFields {
  name?: string | undefined
  email?: string | undefined
  role?: Role | undefined
}

interface AuditQuery {
  limit: number
  /** Epoch milliseconds. */
  since: number | undefined
  action: string | undefined
  target: string | undefined
}

const one = '/api/organizations/{organization}'
const oneUser = '/api/organizations/{organization}/members/{user}'
const pathOf = (organization: string) => ({ path: { organization } })
const forced = (force: boolean) => (force ? { query: { force: 'true' } as const } : {})

/** Manages organizations and users. The token needs the scopes admin:read and admin:write. */
export const openAccountClient = ({ api }: Client) => ({
  organizations: (): Promise<OrganizationView[]> =>
    allPages(async (after, limit) => {
      const page = await dataOf(api.GET('/api/organizations', { params: { query: { limit, after } } }))
      return { ...page, entries: page.organizations }
    }),

  /** Without a name, an id is the name. */
  async create(fields: OrganizationFields): Promise<OrganizationView> {
    const body = { ...fields, name: requireName(fields.name ?? newId('org')) }
    return memberOf(api.POST('/api/organizations', { body }), 'organization')
  },
  async update(organization: string, fields: OrganizationFields): Promise<OrganizationView> {
    const body = { ...fields, ...(fields.name === undefined ? {} : { name: requireName(fields.name) }) }
    return memberOf(api.PATCH(one, { params: pathOf(organization), body }), 'organization')
  },
  suspend: (organization: string, { cancel }: { cancel: boolean }) =>
    dataOf(
      api.POST(`${one}/suspend`, {
        params: { ...pathOf(organization), ...(cancel ? { query: { cancel: 'true' } as const } : {}) },
      }),
    ),
  resume: (organization: string): Promise<OrganizationView> =>
    memberOf(api.POST(`${one}/resume`, { params: pathOf(organization) }), 'organization'),
  remove: (organization: string, { force }: { force: boolean }) =>
    dataOf(api.DELETE(one, { params: { ...pathOf(organization), ...forced(force) } })),

  users: (organization: string): Promise<UserView[]> =>
    allPages(async (after, limit) => {
      const params = { ...pathOf(organization), query: { limit, after } }
      const page = await dataOf(api.GET(`${one}/members`, { params }))
      return { ...page, entries: page.users }
    }),
  async addUser(organization: string, fields: Required<UserFields>): Promise<UserView> {
    const body = checked(UserCreate.safeParse(fields))
    return memberOf(api.POST(`${one}/members`, { params: pathOf(organization), body }), 'user')
  },
  updateUser(organization: string, user: string, fields: UserFields, { force }: { force: boolean }) {
    const body = checked(UserChange.safeParse(fields))
    return dataOf(api.PATCH(oneUser, { params: { path: { organization, user }, ...forced(force) }, body }))
  },
  removeUser: (organization: string, user: string, { force }: { force: boolean }) =>
    dataOf(api.DELETE(oneUser, { params: { path: { organization, user }, ...forced(force) } })),

  /** The newest entries first. */
  audit: (organization: string, { limit, since, action, target }: AuditQuery): Promise<AuditEntryView[]> =>
    allPages(async (after, size) => {
      const from = since === undefined ? undefined : Math.floor(since / 1000)
      const query = { since: from, action, target, limit: size, after }
      const page = await dataOf(api.GET(`${one}/audit`, { params: { ...pathOf(organization), query } }))
      return page
    }, limit),
})
type AccountClient = ReturnType<typeof openAccountClient>

/** Runs work with the accounts of a server, or of the data directory. */
export const withAccountClient = (
  dataDir: string | undefined,
  work: (client: AccountClient) => Promise<void>,
  options?: { stopsWork?: boolean },
): Promise<void> => withClient(dataDir, client => work(openAccountClient(client)), options)

/**
 * Finds the organization with this id or name; without one, the only organization or the one named `default`. A deleted
 * one is found by its id if it may be deleted: its usage and its audit log are kept.
 */
export async function organizationFor(
  client: Pick<AccountClient, 'organizations'>,
  idOrName: string | undefined,
  { mayBeDeleted = true } = {},
): Promise<OrganizationView> {
  const all = (await client.organizations()).toReversed()
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
  return (await organizationFor(openAccountClient(client), idOrName, options)).id
}

/** The organization of the client's token. */
export const ownOrganization = ({ api }: Client) => memberOf(api.GET('/api/me'), 'organization')

/** Finds the user with this id or e-mail address. */
export async function userFor(
  client: Pick<AccountClient, 'users'>,
  organization: string,
  idOrEmail: string,
): Promise<UserView> {
  const users = await client.users(organization)
  const found = users.find(({ id, email }) => id === idOrEmail || email === idOrEmail.toLowerCase())
  if (!found) throw refused('not_found', `There is no user '${idOrEmail}' here. See: infer user list`)
  return found
}

function requireName(name: string): string {
  const trimmed = name.trim()
  if (trimmed === '' || trimmed.length > 128) throw usageFailure('The name of an organization has 1 to 128 characters.')
  return trimmed
}

/** Returns what was read of the fields. Throws usage with the first mistake. */
function checked<T>(
  read: { success: true; data: T } | { success: false; error: { issues: { message: string }[] } },
): T {
  if (read.success) return read.data
  throw usageFailure(read.error.issues[0]!.message)
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
  all.length > 10
    ? `${all
        .slice(0, 10)
        .map(({ name }) => name)
        .join(', ')} and ${all.length - 10} more`
    : all.map(({ name }) => name).join(', ')

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
