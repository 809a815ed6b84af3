import { conflict, Failure, invalid } from '../../failure.ts'
import { auditedToken, changedFields } from '../audit-fields.ts'
import type { Statements } from '../method-table.ts'
import {
  type NewToken,
  type OrganizationStatus,
  type ParentLimits,
  type Scope,
  scopesOfRole,
  type TokenLimits,
  type TokenRecord,
  theServer,
  type VerifiableToken,
} from '../store.ts'
import { fromJson, openInsert, openUpdate, type RowOf, recordIf, selected, withChanges } from './columns.ts'
import type { Connection } from './database.ts'
import { type OrganizationLimitsRow, organizationLimitFields, withLocalOnly } from './organizations.ts'
import { hasWords, searchWords } from './search-words.ts'
import { openActiveTokens, openUserRows } from './users.ts'
import type { WriteContext } from './write-context.ts'

const limitFields =
  'requestsPerMinute, jobsPerMinute, tokensPerMinute, concurrentRequests, monthlySpendLimit, allowedHours, localOnly'
const changingFields = `name, scopes, models, status, expiresAt, userId, metadata, ${limitFields}`
const fields = `organizationId, id, hint, createdAt, createdBy, originId, limitsParent, ${changingFields}`
const select = `SELECT ${selected(`${fields}, lastUsedAt`)} FROM tokens`

/** A token as its row has it: JSON as text. */
interface TokenRow
  extends RowOf<
    Omit<TokenRecord, 'limits' | 'originId' | 'parentLimits' | 'status'> & Omit<TokenLimits, 'localOnly'>,
    'scopes' | 'models' | 'allowedHours'
  > {
  localOnly: number
  status: VerifiableToken['status']
  originId: string | null
  limitsParent: string | null
}

/** Generations of tokens with limits: each counts what all below it spend and send. */
const maxParentLimits = 16

/** The limits of a creator that count what the tokens below it do. */
const sharedLimits = [
  'monthlySpendLimit',
  'requestsPerMinute',
  'jobsPerMinute',
  'tokensPerMinute',
  'concurrentRequests',
] as const

/** Finds the limits of the creators of a token, from the first of them. */
export function openParentLimits(connection: Connection) {
  const above = connection.query<ParentLimits>`WITH RECURSIVE above (origin, parent) AS (
      SELECT id, limits_parent FROM tokens WHERE id = ?
      UNION ALL SELECT tokens.id, limits_parent FROM above JOIN tokens ON tokens.id = parent)
    SELECT origin AS originId, newest.id AS tokenId, name AS tokenName, ${selected(sharedLimits.join(', '))}
    FROM above JOIN tokens AS newest ON newest.id = coalesce(
      (SELECT max(id) FROM tokens WHERE origin_id = origin AND origin_id IS NOT NULL), origin)`
  return (limitsParent: string | null): ParentLimits[] => (limitsParent === null ? [] : above.all(limitsParent))
}
type ReadParentLimits = ReturnType<typeof openParentLimits>

function tokenOf(row: TokenRow, now: number, parentLimits: ReadParentLimits): TokenRecord {
  const { organizationId, id, name, hint, createdAt, createdBy, expiresAt, userId, metadata, lastUsedAt } = row
  const token = { organizationId, id, name, hint, createdAt, createdBy, expiresAt, userId, metadata, lastUsedAt }
  return {
    ...token,
    scopes: fromJson(row.scopes),
    models: fromJson(row.models),
    status: row.status === 'active' && expiresAt !== null && expiresAt <= now ? 'expired' : row.status,
    originId: row.originId ?? id,
    limits: limitsOf(row),
    parentLimits: parentLimits(row.limitsParent),
  }
}

const limitsOf = (row: TokenRow): TokenLimits => ({
  requestsPerMinute: row.requestsPerMinute,
  jobsPerMinute: row.jobsPerMinute,
  tokensPerMinute: row.tokensPerMinute,
  concurrentRequests: row.concurrentRequests,
  monthlySpendLimit: row.monthlySpendLimit,
  allowedHours: fromJson(row.allowedHours),
  localOnly: row.localOnly === 1,
})

/** The writer's commands for tokens. Each runs inside a savepoint of the writer's transaction. */
export function tokenCommands(connection: Connection, { audit, events }: WriteContext) {
  const organization = connection.scalar<OrganizationStatus>`SELECT status FROM organizations WHERE id = ?`
  const one = connection.query<TokenRow>`${select} WHERE organization_id = ? AND id = ?`
  const insert = openInsert(connection, 'tokens', `publicId, digest, ${fields}`)
  const change = openUpdate(connection, 'tokens', changingFields)
  const keepLocal = connection.statement`UPDATE tokens SET local_only = ?
    WHERE organization_id = ? AND (id = ? OR origin_id = ?)`
  const revoke = connection.statement`UPDATE tokens SET status = 'revoked', revoked_at = ? WHERE organization_id = ?
    AND id = ? AND status <> 'revoked'`
  const expire = connection.statement`UPDATE tokens SET expires_at = ? WHERE organization_id = ? AND id = ?
    AND coalesce(expires_at > ?, TRUE)`
  const touch = connection.statement`UPDATE tokens SET last_used_at = ? WHERE id = ?
    AND coalesce(last_used_at <= ? - 60000, TRUE)`

  const findUser = openUserRows(connection)
  const parentLimits = openParentLimits(connection)
  const recordOf = (row: TokenRow, at: number) => tokenOf(row, at, parentLimits)

  /** Returns the nearest creator whose limits the token shares. Throws `conflict` after too many generations. */
  function limitsParentOf({ organizationId, originId, createdBy }: NewToken): string | null {
    const creator = createdBy === null ? undefined : one.get(organizationId, createdBy)
    if (!creator) return null
    const ofCreator = creator.originId ?? creator.id
    // A new secret of the same token.
    if (originId === ofCreator || sharedLimits.every(name => creator[name] === null)) return creator.limitsParent
    if (parentLimits(ofCreator).length > maxParentLimits)
      throw conflict(
        `The token '${creator.name}' shares the limits of ${maxParentLimits} tokens above it, and can create no more. Create the token with one of those, or rotate '${creator.name}'.`,
      )
    return ofCreator
  }

  /** Throws Failure `invalid_value` for an unknown user, and `insufficient_scope` for scopes beyond his role. */
  function requireUser(organizationId: string, userId: string, scopes: readonly Scope[]): void {
    const user = findUser(organizationId, userId)
    if (!user) throw invalid('user_id', `The organization has no user ${userId.slice(0, 64)}.`)
    const allowed = scopesOfRole[user.role]
    const beyond = scopes.find(scope => !allowed.includes(scope))
    if (beyond !== undefined)
      throw invalid(
        'scopes',
        `${user.name} is a ${user.role}, whose tokens may have ${allowed.join(', ')} only, not ${beyond}.`,
        'insufficient_scope',
      )
  }

  function announce(type: 'token.created' | 'token.revoked', { organizationId, id, name }: TokenRow, at: number): void {
    events.addOfOrganization(organizationId, type, { token_id: id, name }, at)
  }

  function create(it: NewToken): TokenRow {
    if ((organization.get(it.organizationId) ?? 'deleted') === 'deleted')
      throw new Failure('not_found', `No organization '${it.organizationId}'. Create it with "infer org create".`)
    if (it.userId) requireUser(it.organizationId, it.userId, it.scopes)
    insert({ ...it, localOnly: false, ...it.limits, limitsParent: limitsParentOf(it), status: 'active' })
    const row = one.get(it.organizationId, it.id)!
    announce('token.created', row, it.createdAt)
    return row
  }

  return {
    'tokens.create'(token, by = theServer) {
      const created = recordOf(create(token), token.createdAt)
      const { organizationId, id, createdAt: at } = token
      audit({ organizationId, id, at, by, action: 'token.created', after: auditedToken(created) })
      return created
    },

    /** A revoked token stays revoked. */
    'tokens.update'(organizationId, id, changes, by = theServer) {
      const at = Date.now()
      const row = one.get(organizationId, id)
      if (!row) return undefined
      if (row.status === 'revoked')
        throw conflict(`The token '${row.name}' is revoked and cannot be changed. Create a new one.`)
      const { scopes, userId, limits, ...others } = changes
      const owner = userId === undefined ? row.userId : userId
      if (owner !== null && (userId !== undefined || scopes))
        requireUser(organizationId, owner, scopes ?? fromJson(row.scopes))
      change({ ...withChanges(row, { scopes, userId, ...others }), ...limits })
      // A rotated token works on with its earlier secrets for a while, and so does its stored work.
      const origin = row.originId ?? id
      if (limits?.localOnly !== undefined) keepLocal.run(limits.localOnly ? 1 : 0, organizationId, origin, origin)
      const after = recordOf(one.get(organizationId, id)!, at)
      const changed = changedFields(auditedToken(recordOf(row, at)), auditedToken(after))
      if (changed) audit({ organizationId, id, at, by, action: 'token.updated', ...changed })
      return after
    },

    'tokens.revoke'(organizationId, id, at, by = theServer) {
      const { changes } = revoke.run(at, organizationId, id)
      const row = one.get(organizationId, id)
      if (!row || changes === 0) return row && recordOf(row, at)
      announce('token.revoked', row, at)
      const [before, after] = [{ name: row.name }, { status: 'revoked' }]
      audit({ organizationId, id, at, by, action: 'token.revoked', before, after })
      return recordOf(row, at)
    },

    'tokens.rotate'(organizationId, id, next, previousValidUntil, by = theServer) {
      const row = one.get(organizationId, id)
      if (!row) return undefined
      const { createdAt: at } = next
      if (recordOf(row, at).status !== 'active')
        throw conflict(`The token '${row.name}' is not active; only an active one can be rotated.`)
      const created = create(next)
      expire.run(previousValidUntil, organizationId, id, previousValidUntil)
      const before = { name: row.name }
      const after = { next_token_id: next.id, previous_valid_until: Math.floor(previousValidUntil / 1000) }
      audit({ organizationId, id, at, by, action: 'token.rotated', before, after })
      return recordOf(created, at)
    },

    'tokens.touch'(uses) {
      for (const use of uses) touch.run(use.at, use.id, use.at)
    },
  } satisfies Statements
}

/** Reads of tokens; short statements on a read-only connection. */
export function tokenReads(connection: Connection, now: () => number = Date.now) {
  // Two look-ups and no join: measured 5 µs, where one statement over both tables takes 22 µs.
  const verifying = (column: 'public_id' | 'id') =>
    connection.query<TokenRow & { digest: Buffer }>`SELECT ${selected(`digest, lastUsedAt, ${fields}`)} FROM tokens
      WHERE ${column} = ?`
  const verify = verifying('public_id')
  const verifyId = verifying('id')
  const owner = connection.query<
    OrganizationLimitsRow &
      Pick<VerifiableToken, 'organizationName' | 'organizationStatus' | 'plan' | 'region' | 'callStorage'>
  >`SELECT name AS organizationName, status AS organizationStatus, plan, region,
    ${selected(`callStorage, ${organizationLimitFields}`)}
    FROM organizations WHERE id = ?`
  const one = connection.query<TokenRow>`${select} WHERE organization_id = ? AND id = ?`
  const page = connection.query<Pick<TokenRow, 'id' | 'name'>>`
    SELECT id, name FROM tokens WHERE organization_id = @organizationId AND (@after IS NULL OR id < @after)
    AND (@status IS NULL
      OR CASE WHEN status = 'active' AND expires_at <= @now THEN 'expired' ELSE status END = @status)
    AND (@userId IS NULL OR user_id = @userId)
    ORDER BY id DESC`
  const listed = connection.query<TokenRow>`${select} WHERE organization_id = ?
    AND id IN (SELECT value FROM json_each(?)) ORDER BY id DESC`
  const active = openActiveTokens(connection)
  const parentLimits = openParentLimits(connection)
  const recordOf = (row: TokenRow) => tokenOf(row, now(), parentLimits)

  function verifiable(row: (TokenRow & { digest: Buffer }) | undefined): VerifiableToken | undefined {
    const organization = row && owner.get(row.organizationId)
    if (!row || !organization) return undefined
    const { organizationName, organizationStatus, plan, region, callStorage, ...organizationLimits } = organization
    return {
      id: row.id,
      organizationId: row.organizationId,
      organizationName,
      organizationStatus,
      plan,
      organizationLimits: withLocalOnly(organizationLimits),
      region,
      callStorage,
      name: row.name,
      scopes: fromJson(row.scopes),
      digest: row.digest,
      hint: row.hint,
      models: fromJson(row.models),
      limits: limitsOf(row),
      userId: row.userId,
      originId: row.originId ?? row.id,
      parentLimits: parentLimits(row.limitsParent),
      status: row.status,
      createdAt: row.createdAt,
      expiresAt: row.expiresAt,
      lastUsedAt: row.lastUsedAt,
    }
  }

  return {
    'tokens.verify': publicId => verifiable(verify.get(publicId)),
    'tokens.verifyId': id => verifiable(verifyId.get(id)),
    'tokens.find': (organizationId, id) => recordIf(one.get(organizationId, id), recordOf),
    'tokens.list'(organizationId, options) {
      const { limit, after = null, status = null, userId = null, search = '' } = options
      const words = searchWords(search)
      const found: string[] = []
      // Of a token that the search does not find only the name is read.
      for (const { id, name } of page.iterate({ organizationId, after, status, userId, now: now() }))
        if (hasWords(name, words) && found.push(id) === limit) break
      const above = new Map<string | null, ParentLimits[]>()
      // Those of one creator are read once.
      const limitsAbove: ReadParentLimits = parent => {
        const limits = above.get(parent) ?? parentLimits(parent)
        above.set(parent, limits)
        return limits
      }
      return listed.all(organizationId, JSON.stringify(found)).map(row => tokenOf(row, now(), limitsAbove))
    },
    'tokens.countActive': (organizationId, scope, at) => active.get(organizationId, at, scope)!,
  } satisfies Statements
}
