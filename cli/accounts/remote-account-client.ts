import { z } from 'zod'
import { AuditEntryView } from '../../core/accounts/audit-view.ts'
import { OrganizationView } from '../../core/accounts/organization-view.ts'
import { UserView } from '../../core/accounts/user-view.ts'
import { newId } from '../../core/ids.ts'
import type { Client } from '../client/client.ts'
import type { AccountClient } from './account-client.ts'

const page = { has_more: z.boolean(), next_cursor: z.string().nullable() }
const One = z.object({ organization: OrganizationView })
const cancelled = { jobs_cancelled: z.int(), executions_cancelled: z.int(), requests_cancelled: z.int() }
const Suspended = One.extend(cancelled)
const Deleted = z.object({
  ...cancelled,
  tokens_revoked: z.int(),
  users_removed: z.int(),
  files_removed: z.int(),
  workflows_removed: z.int(),
})
const OneUser = z.object({ user: UserView })
const ChangedUser = OneUser.extend({ tokens_narrowed: z.int(), tokens_revoked: z.int() })
const RemovedUser = z.object({ tokens_revoked: z.int() })

/** Maximum number of pages of 100 entries, in case a server always reports more. */
const maxPages = 1_000
const base = '/api/organizations'
const of = (id: string): string => `${base}/${encodeURIComponent(id)}`

/** Manages organizations of a server through its API. The token needs the scopes admin:read and admin:write. */
export function openRemoteAccountClient(client: Client): AccountClient {
  /** Reads the entries of all pages, at most `limit`. */
  async function all<T>(path: string, name: string, entry: z.ZodType<T>, query = {}, limit = Infinity): Promise<T[]> {
    const found: T[] = []
    let after: string | null = null
    for (let count = 0; count < maxPages && found.length < limit; count++) {
      const size = String(Math.min(100, limit - found.length))
      const search = new URLSearchParams({ ...query, limit: size, ...(after === null ? {} : { after }) })
      const Page = z.object({ [name]: z.array(entry), ...page })
      const answer: Record<string, unknown> = await client.ask({
        method: 'GET',
        path: `${path}?${search.toString()}`,
        answer: Page,
      })
      found.push(...(answer[name] as T[]))
      after = answer.next_cursor as string | null
      if (after === null) break
    }
    return found
  }

  return {
    organizations: () => all(base, 'organizations', OrganizationView),
    async create(fields) {
      const body = { ...fields, name: fields.name ?? newId('org') }
      return (await client.ask({ method: 'POST', path: base, body, answer: One })).organization
    },
    update: async (id, body) => (await client.ask({ method: 'PATCH', path: of(id), body, answer: One })).organization,
    suspend: (id, { cancel }) =>
      client.ask({ method: 'POST', path: `${of(id)}/suspend${cancel ? '?cancel=true' : ''}`, answer: Suspended }),
    resume: async id => (await client.ask({ method: 'POST', path: `${of(id)}/resume`, answer: One })).organization,
    remove: (id, { force }) =>
      client.ask({ method: 'DELETE', path: `${of(id)}${force ? '?force=true' : ''}`, answer: Deleted }),
    users: organization => all(`${of(organization)}/members`, 'users', UserView),
    addUser: async (organization, body) =>
      (await client.ask({ method: 'POST', path: `${of(organization)}/members`, body, answer: OneUser })).user,
    updateUser: (organization, id, body, { force }) =>
      client.ask({
        method: 'PATCH',
        path: `${of(organization)}/members/${encodeURIComponent(id)}${force ? '?force=true' : ''}`,
        body,
        answer: ChangedUser,
      }),
    removeUser: (organization, id, { force }) =>
      client.ask({
        method: 'DELETE',
        path: `${of(organization)}/members/${encodeURIComponent(id)}${force ? '?force=true' : ''}`,
        answer: RemovedUser,
      }),
    audit: (organization, { limit, since, action, target }) =>
      all(
        `${of(organization)}/audit`,
        'entries',
        AuditEntryView,
        {
          ...(since === undefined ? {} : { since: String(Math.floor(since / 1000)) }),
          ...(action === undefined ? {} : { action }),
          ...(target === undefined ? {} : { target }),
        },
        limit,
      ),
    close: () => Promise.resolve(),
  }
}
