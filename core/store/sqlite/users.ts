import { conflict, Failure, invalid } from '../../failure.ts'
import { auditedUser, changedFields } from '../audit-fields.ts'
import type { Statements } from '../method-table.ts'
import { type Scope, scopesOfRole, type User, type UserAct, type UserSummary } from '../store.ts'
import { openInsert, openUpdate, selected } from './columns.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './write-context.ts'

const fields = 'id, organizationId, name, email, role, createdAt, updatedAt, removedAt'

/** What changing or removing a user did to his tokens. */
interface TokenConsequences {
  tokensNarrowed: number
  tokensRevoked: number
}

/** Counts the active tokens of an organization that have a scope at a time. */
export const openActiveTokens = (connection: Connection) =>
  connection.scalar<number>`SELECT count(*) FROM tokens WHERE organization_id = ? AND status = 'active'
    AND (expires_at IS NULL OR expires_at > ?) AND EXISTS (SELECT 1 FROM json_each(scopes) WHERE value = ?)`

/** Looks up a user who was not removed, inside the caller's transaction. */
export function openUserRows(connection: Connection) {
  const one = connection.query<User>`SELECT ${selected(fields)} FROM users WHERE organization_id = ? AND id = ?
    AND removed_at IS NULL`
  return (organizationId: string, id: string): User | undefined => one.get(organizationId, id)
}

/** The writer's commands for users. Each runs inside a savepoint of the writer's transaction. */
export function userCommands(connection: Connection, { audit, events }: WriteContext) {
  const organization = connection.scalar<string>`SELECT status FROM organizations WHERE id = ?`
  const find = openUserRows(connection)
  const taken = connection.scalar<string>`SELECT id FROM users WHERE organization_id = ? AND email = ?
    AND removed_at IS NULL AND id <> ?`
  const insert = openInsert(connection, 'users', fields)
  const change = openUpdate(connection, 'users', 'name, email, role, updatedAt')
  const remove = connection.statement`UPDATE users SET removed_at = ?, updated_at = ? WHERE organization_id = ?
    AND id = ?`
  const otherOwners = connection.scalar<number>`SELECT count(*) FROM users WHERE organization_id = ? AND role = 'owner'
    AND removed_at IS NULL AND id <> ?`
  const tokens = connection.query<{ id: string; name: string; scopes: string }>`SELECT id, name, scopes FROM tokens
    WHERE user_id = ? AND status <> 'revoked'`
  const narrow = connection.statement`UPDATE tokens SET scopes = ? WHERE id = ?`
  const revoke = connection.statement`UPDATE tokens SET status = 'revoked', revoked_at = ? WHERE id = ?`
  const admins = openActiveTokens(connection)

  function refuseTaken({ organizationId, email, id }: Pick<User, 'organizationId' | 'email' | 'id'>): void {
    const other = taken.get(organizationId, email, id)
    if (other !== undefined)
      throw invalid('email', `The e-mail address ${email} belongs to ${other} already.`, 'conflict')
  }

  /** Throws `conflict` for the only owner: without one, nobody could change the owners again. */
  function refuseLastOwner({ organizationId, id, name, role }: User): void {
    if (role === 'owner' && otherOwners.get(organizationId, id) === 0)
      throw conflict(`${name} is the only owner of the organization. Make another user its owner first.`)
  }

  /** Takes the scopes beyond these from the user's tokens, and revokes tokens that have none left. */
  function bound(user: User, allowed: readonly Scope[], { by, at, force }: UserAct): TokenConsequences {
    const { organizationId } = user
    const adminsBefore = admins.get(organizationId, at, 'admin:write')!
    let [tokensNarrowed, tokensRevoked] = [0, 0]
    for (const token of tokens.all(user.id)) {
      const before = JSON.parse(token.scopes) as Scope[]
      const after = before.filter(scope => allowed.includes(scope))
      if (after.length === before.length) continue
      const entry = { organizationId, id: token.id, at, by }
      if (after.length > 0) {
        tokensNarrowed++
        narrow.run(JSON.stringify(after), token.id)
        audit({ ...entry, action: 'token.updated', before: { scopes: before }, after: { scopes: after } })
        continue
      }
      tokensRevoked++
      revoke.run(at, token.id)
      audit({ ...entry, action: 'token.revoked', before: { name: token.name }, after: { status: 'revoked' } })
      events.addOfOrganization(organizationId, 'token.revoked', { token_id: token.id, name: token.name }, at)
    }
    if (!force && adminsBefore > 0 && admins.get(organizationId, at, 'admin:write') === 0)
      throw conflict(
        `${user.name} has the last tokens with the scope admin:write. Create another one first, or force it.`,
      )
    return { tokensNarrowed, tokensRevoked }
  }

  return {
    'users.create'(user, by) {
      const { organizationId, id, createdAt: at } = user
      if ((organization.get(organizationId) ?? 'deleted') === 'deleted')
        throw new Failure('not_found', `There is no organization '${organizationId}'.`)
      refuseTaken(user)
      insert({ ...user, updatedAt: at })
      audit({ organizationId, id, at, by, action: 'user.created', after: auditedUser(user) })
      return find(organizationId, id)!
    },

    'users.update'(organizationId, id, changes, act) {
      const { by, at } = act
      const user = find(organizationId, id)
      if (!user) return undefined
      const after = { ...user, ...changes }
      if (after.role !== 'owner') refuseLastOwner(user)
      refuseTaken(after)
      change({ ...after, updatedAt: at })
      const changed = changedFields(auditedUser(user), auditedUser(after))
      if (changed) audit({ organizationId, id, at, by, action: 'user.updated', ...changed })
      return bound(after, scopesOfRole[after.role], act)
    },

    'users.remove'(organizationId, id, act) {
      const { by, at } = act
      const user = find(organizationId, id)
      if (!user) return undefined
      refuseLastOwner(user)
      remove.run(at, at, organizationId, id)
      audit({ organizationId, id, at, by, action: 'user.removed', before: auditedUser(user) })
      return bound(user, [], act)
    },
  } satisfies Statements
}

/** Reads of users; short statements on a read-only connection. */
export function userReads(connection: Connection, now: () => number = Date.now) {
  const find = openUserRows(connection)
  const summary = `SELECT ${selected(fields, 'users')}, max(tokens.last_used_at) AS lastUsedAt,
      count(CASE WHEN tokens.status = 'active' AND coalesce(tokens.expires_at > :now, TRUE) THEN 1 END) AS activeTokens
    FROM users LEFT JOIN tokens ON tokens.user_id = users.id
    WHERE users.organization_id = :organizationId AND users.removed_at IS NULL`
  const page = connection.query<UserSummary>`${summary} AND (:after IS NULL OR users.id < :after) GROUP BY users.id
    ORDER BY users.id DESC LIMIT :limit`
  const one = connection.query<UserSummary>`${summary} AND users.id = :id GROUP BY users.id`
  return {
    'users.find': find,
    'users.summary': (organizationId, id) => one.get({ organizationId, id, now: now() }),
    'users.list': (organizationId, { limit, after = null }) => page.all({ organizationId, limit, after, now: now() }),
  } satisfies Statements
}
