import { auditEntryView } from '../../core/accounts/audit-view.ts'
import { limitsOfChange, organizationView } from '../../core/accounts/organization-view.ts'
import { UserChange, UserCreate, userView } from '../../core/accounts/user-view.ts'
import { newId } from '../../core/ids.ts'
import type { AuditRecord, OrganizationChange, UserSummary } from '../../core/store/store.ts'
import { refused, usage } from '../terminal/exit-codes.ts'
import type { AccountClient, OrganizationFields } from './account-client.ts'
import type { Installation } from './installation.ts'

const pageSize = 100

/** Manages organizations directly in the store of this machine, whether the server runs or not. */
export function openLocalAccountClient({ organizations, actor, close }: Installation): AccountClient {
  const { users } = organizations
  const noOrganization = (id: string) => refused('not_found', `There is no organization '${id}'. See: infer org list`)
  const noUser = (id: string) => refused('not_found', `There is no user '${id}' here. See: infer user list`)
  async function shown(organization: string, id: string) {
    const user = await users.summary(organization, id)
    if (!user) throw noUser(id)
    return userView(user)
  }

  return {
    organizations: async () => (await organizations.list()).map(organizationView),

    async create({ name, limits, ...fields }) {
      const id = newId('org')
      const change = changeOf({ ...fields, limits })
      return organizationView(await organizations.create({ ...change, id, name: requireName(name ?? id) }, actor))
    },

    async update(id, { name, ...fields }) {
      const change = { ...changeOf(fields), ...(name === undefined ? {} : { name: requireName(name) }) }
      const updated = await organizations.update(id, change, actor)
      if (!updated) throw noOrganization(id)
      return organizationView(updated)
    },

    async suspend(id, { cancel }) {
      const done = await organizations.suspend(id, { cancel }, actor)
      if (!done) throw noOrganization(id)
      return {
        organization: organizationView(done.organization),
        jobs_cancelled: done.cancelled.jobs,
        executions_cancelled: done.cancelled.executions,
        requests_cancelled: 0,
      }
    },

    async resume(id) {
      const resumed = await organizations.resume(id, actor)
      if (!resumed) throw noOrganization(id)
      return organizationView(resumed)
    },

    async remove(id, { force }) {
      const done = await organizations.remove(id, { force }, actor)
      if (!done) throw noOrganization(id)
      return {
        jobs_cancelled: done.work.jobs,
        executions_cancelled: done.work.executions,
        requests_cancelled: 0,
        tokens_revoked: done.tokensRevoked,
        users_removed: done.usersRemoved,
        files_removed: done.filesRemoved,
        workflows_removed: done.workflowsRemoved,
      }
    },

    async users(organization) {
      const all: UserSummary[] = []
      for (;;) {
        const after = all.at(-1)?.id
        const page = await users.list(organization, { limit: pageSize, ...(after === undefined ? {} : { after }) })
        all.push(...page)
        if (page.length < pageSize) return all.map(userView)
      }
    },

    async addUser(organizationId, fields) {
      const checked = UserCreate.safeParse(fields)
      if (!checked.success) throw usage(checked.error.issues[0]!.message)
      const { id } = await users.create({ organizationId, ...checked.data }, actor)
      return shown(organizationId, id)
    },

    async updateUser(organization, id, fields, { force }) {
      const checked = UserChange.safeParse(fields)
      if (!checked.success) throw usage(checked.error.issues[0]!.message)
      const change = Object.fromEntries(Object.entries(checked.data).filter(([, value]) => value !== undefined))
      const done = await users.update(organization, id, change, actor, force)
      if (!done) throw noUser(id)
      return {
        user: await shown(organization, id),
        tokens_narrowed: done.tokensNarrowed,
        tokens_revoked: done.tokensRevoked,
      }
    },

    async removeUser(organization, id, { force }) {
      const done = await users.remove(organization, id, actor, force)
      if (!done) throw noUser(id)
      return { tokens_revoked: done.tokensRevoked }
    },

    async audit(organization, { limit, since, action, target }) {
      const found: AuditRecord[] = []
      let before: number | null | undefined
      while (before !== null && found.length < limit) {
        const { records, next } = await organizations.audit(organization, {
          limit: Math.min(pageSize, limit - found.length),
          ...(before === undefined ? {} : { before }),
          ...(since === undefined ? {} : { since }),
          ...(action === undefined ? {} : { action }),
          ...(target === undefined ? {} : { targetId: target }),
        })
        found.push(...records)
        before = next
      }
      return found.map(auditEntryView)
    },

    close,
  }
}

function requireName(name: string | undefined): string {
  const trimmed = name?.trim() ?? ''
  if (trimmed === '' || trimmed.length > 128) throw usage('The name of an organization has 1 to 128 characters.')
  return trimmed
}

function changeOf({ limits, ...fields }: Omit<OrganizationFields, 'name'>): OrganizationChange {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(given) as OrganizationChange), ...(limits ? limitsOfChange(limits) : {}) }
}
