import { Failure } from '../../failure.ts'
import { auditedToken, changedFields } from '../audited.ts'
import type { Statements } from '../method-table.ts'
import { type NewToken, type OrganizationStatus, type Scope, scopesOfRole, theServer } from '../store.ts'
import { openAudit } from './audit.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './job-end.ts'
import {
  type TokenRow,
  tokenColumns,
  tokenLimitsColumns,
  tokenLimitsOf,
  tokenLimitValues,
  tokenOf,
} from './token-rows.ts'
import { openUserRows } from './users.ts'

/** The writer's commands for tokens. Each runs inside a savepoint of the writer's transaction. */
export function tokenCommands(connection: Connection, { events, effects }: Pick<WriteContext, 'events' | 'effects'>) {
  const organization = connection
    .prepare<[string], OrganizationStatus>('SELECT status FROM organizations WHERE id = ?')
    .pluck()
  const one = connection.prepare<[string, string], TokenRow>(
    `SELECT ${tokenColumns} FROM tokens WHERE organization_id = ? AND id = ?`,
  )
  const insert = connection.prepare(
    `INSERT INTO tokens (organization_id, id, public_id, name, scopes, digest, hint, models, status, created_at,
       expires_at, created_by, user_id, metadata, origin_id, ${tokenLimitsColumns})
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const change = connection.prepare(
    `UPDATE tokens SET name = ?, scopes = ?, models = ?, expires_at = ?, status = ?, user_id = ?, metadata = ?,
       requests_per_minute = ?, jobs_per_minute = ?, tokens_per_minute = ?, concurrent_requests = ?,
       monthly_spend_limit = ?, allowed_hours = ? WHERE organization_id = ? AND id = ?`,
  )
  const revoke = connection.prepare(
    `UPDATE tokens SET status = 'revoked', revoked_at = ? WHERE organization_id = ? AND id = ? AND status <> 'revoked'`,
  )
  const expire = connection.prepare(
    `UPDATE tokens SET expires_at = ? WHERE organization_id = ? AND id = ? AND coalesce(expires_at > ?, TRUE)`,
  )
  const touch = connection.prepare(
    'UPDATE tokens SET last_used_at = ? WHERE id = ? AND coalesce(last_used_at <= ? - 60000, TRUE)',
  )

  const audit = openAudit(connection)
  const findUser = openUserRows(connection)

  /** Throws Failure `invalid_value` for an unknown user, and `insufficient_scope` for scopes beyond his role. */
  function requireUser(organizationId: string, userId: string, scopes: readonly Scope[]): void {
    const user = findUser(organizationId, userId)
    if (!user)
      throw new Failure('invalid_value', `The organization has no user ${userId.slice(0, 64)}.`, { param: 'user_id' })
    const allowed = scopesOfRole[user.role]
    const beyond = scopes.find(scope => !allowed.includes(scope))
    if (beyond !== undefined)
      throw new Failure(
        'insufficient_scope',
        `${user.name} is a ${user.role}, whose tokens may have ${allowed.join(', ')} only, not ${beyond}.`,
        { param: 'scopes' },
      )
  }

  function announce(
    type: 'token.created' | 'token.revoked',
    it: Pick<TokenRow, 'organization_id' | 'id' | 'name'>,
    at: number,
  ): void {
    events.addOfOrganization(it.organization_id, type, { token_id: it.id, name: it.name }, at)
    effects.eventOf(it.organization_id)
  }

  function create(it: NewToken): TokenRow {
    if ((organization.get(it.organizationId) ?? 'deleted') === 'deleted')
      throw new Failure('not_found', `No organization '${it.organizationId}'. Create it with "infer org create".`)
    if (it.userId) requireUser(it.organizationId, it.userId, it.scopes)
    insert.run(
      it.organizationId,
      it.id,
      it.publicId,
      it.name,
      JSON.stringify(it.scopes),
      Buffer.from(it.digest),
      it.hint,
      it.models === null ? null : JSON.stringify(it.models),
      it.createdAt,
      it.expiresAt,
      it.createdBy,
      it.userId ?? null,
      it.metadata ?? null,
      it.originId ?? null,
      ...tokenLimitValues(it.limits ?? {}),
    )
    const row = one.get(it.organizationId, it.id)!
    announce('token.created', row, it.createdAt)
    return row
  }

  return {
    'tokens.create'(token, by = theServer) {
      const created = tokenOf(create(token), token.createdAt)
      audit({
        organizationId: token.organizationId,
        at: token.createdAt,
        actor: by,
        action: 'token.created',
        targetId: token.id,
        before: null,
        after: auditedToken(created),
      })
      return created
    },

    /** A revoked token stays revoked. */
    'tokens.update'(organizationId, id, changes, by = theServer) {
      const at = Date.now()
      const row = one.get(organizationId, id)
      if (!row) return undefined
      if (row.status === 'revoked')
        throw new Failure('conflict', `The token '${row.name}' is revoked and cannot be changed. Create a new one.`)
      const { name, scopes, models, expiresAt, status, userId, metadata, limits } = changes
      const owner = userId === undefined ? row.user_id : userId
      if (owner !== null && (userId !== undefined || scopes))
        requireUser(organizationId, owner, scopes ?? (JSON.parse(row.scopes) as Scope[]))
      change.run(
        name ?? row.name,
        scopes ? JSON.stringify(scopes) : row.scopes,
        models === undefined ? row.models : models && JSON.stringify(models),
        expiresAt === undefined ? row.expires_at : expiresAt,
        status ?? row.status,
        owner,
        metadata === undefined ? row.metadata : metadata,
        ...tokenLimitValues({ ...tokenLimitsOf(row), ...limits }),
        organizationId,
        id,
      )
      const after = tokenOf(one.get(organizationId, id)!, at)
      const changed = changedFields(auditedToken(tokenOf(row, at)), auditedToken(after))
      const target = { organizationId, at, actor: by, targetId: id }
      if (changed) audit({ ...target, action: 'token.updated', ...changed })
      return after
    },

    'tokens.revoke'(organizationId, id, at, by = theServer) {
      const { changes } = revoke.run(at, organizationId, id)
      const row = one.get(organizationId, id)
      if (!row || changes === 0) return row && tokenOf(row, at)
      announce('token.revoked', row, at)
      audit({
        organizationId,
        at,
        actor: by,
        action: 'token.revoked',
        targetId: id,
        before: { name: row.name },
        after: { status: 'revoked' },
      })
      return tokenOf(row, at)
    },

    'tokens.rotate'(organizationId, id, next, previousValidUntil, by = theServer) {
      const row = one.get(organizationId, id)
      if (!row) return undefined
      if (tokenOf(row, next.createdAt).status !== 'active')
        throw new Failure('conflict', `The token '${row.name}' is not active; only an active one can be rotated.`)
      const created = create(next)
      expire.run(previousValidUntil, organizationId, id, previousValidUntil)
      audit({
        organizationId,
        at: next.createdAt,
        actor: by,
        action: 'token.rotated',
        targetId: id,
        before: { name: row.name },
        after: { next_token_id: next.id, previous_valid_until: Math.floor(previousValidUntil / 1000) },
      })
      return tokenOf(created, next.createdAt)
    },

    'tokens.touch'(uses) {
      for (const use of uses) touch.run(use.at, use.id, use.at)
    },
  } satisfies Partial<Statements>
}
