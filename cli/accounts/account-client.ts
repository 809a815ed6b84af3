import type { AuditEntryView } from '../../core/accounts/audit-view.ts'
import type { OrganizationLimitsChange, OrganizationView } from '../../core/accounts/organization-view.ts'
import type { UserView } from '../../core/accounts/user-view.ts'
import type { Role } from '../../core/store/store.ts'
import { refused } from '../terminal/exit-codes.ts'
import { chooseOrganization } from './organizations.ts'

/** Fields of an organization to create or change. */
export interface OrganizationFields {
  name?: string | undefined
  plan?: string | undefined
  region?: string | null | undefined
  share?: number | null | undefined
  limits?: OrganizationLimitsChange | undefined
}

export interface UserFields {
  name?: string | undefined
  email?: string | undefined
  role?: Role | undefined
}

/** What suspending or deleting ended, under the names of the API. */
export interface Ended {
  jobs_cancelled: number
  executions_cancelled: number
  requests_cancelled: number
  tokens_revoked?: number
  users_removed?: number
  files_removed?: number
  workflows_removed?: number
}

export interface AuditQuery {
  limit: number
  /** Epoch milliseconds. */
  since: number | undefined
  action: string | undefined
  target: string | undefined
}

/** Manages organizations and users in the store of this machine, or over HTTP on a server. */
export interface AccountClient {
  organizations(): Promise<OrganizationView[]>
  /** Without a name, an id is the name. */
  create(fields: OrganizationFields): Promise<OrganizationView>
  update(id: string, fields: OrganizationFields): Promise<OrganizationView>
  suspend(id: string, options: { cancel: boolean }): Promise<{ organization: OrganizationView } & Ended>
  resume(id: string): Promise<OrganizationView>
  remove(id: string, options: { force: boolean }): Promise<Ended>
  users(organization: string): Promise<UserView[]>
  addUser(organization: string, user: Required<UserFields>): Promise<UserView>
  updateUser(
    organization: string,
    id: string,
    fields: UserFields,
    options: { force: boolean },
  ): Promise<{ user: UserView; tokens_narrowed: number; tokens_revoked: number }>
  removeUser(organization: string, id: string, options: { force: boolean }): Promise<{ tokens_revoked: number }>
  /** The newest entries first. */
  audit(organization: string, query: AuditQuery): Promise<AuditEntryView[]>
  close(): Promise<void>
}

/** Finds the organization with this id or name; without one, the only organization or the one named `default`. */
export async function organizationFor(client: AccountClient, idOrName: string | undefined): Promise<OrganizationView> {
  const all = await client.organizations()
  const present = all.filter(({ status }) => status !== 'deleted')
  // A deleted one is found by its id: its audit log is kept.
  return all.find(({ id }) => id === idOrName) ?? chooseOrganization(present, idOrName)
}

/** Finds the user with this id or e-mail address. */
export async function userFor(client: AccountClient, organization: string, idOrEmail: string): Promise<UserView> {
  const users = await client.users(organization)
  const found = users.find(({ id, email }) => id === idOrEmail || email === idOrEmail.toLowerCase())
  if (!found) throw refused('not_found', `There is no user '${idOrEmail}' here. See: infer user list`)
  return found
}
