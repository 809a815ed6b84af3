import type { Statements } from '../method-table.ts'
import type { OrganizationStatus, Scope, VerifiableToken } from '../store.ts'
import type { Connection } from './database.ts'
import { type OrganizationLimitsRow, organizationLimitsColumns, organizationLimitsOf } from './organizations.ts'
import {
  type TokenLimitsRow,
  type TokenRow,
  tokenColumns,
  tokenLimitsColumns,
  tokenLimitsOf,
  tokenOf,
} from './token-rows.ts'

interface VerifyRow extends TokenLimitsRow {
  id: string
  organization_id: string
  name: string
  scopes: string
  digest: Buffer
  hint: string
  models: string | null
  status: VerifiableToken['status']
  created_at: number
  expires_at: number | null
  last_used_at: number | null
  user_id: string | null
  origin_id: string | null
}
interface OwnerRow extends OrganizationLimitsRow {
  name: string
  status: OrganizationStatus
  plan: string
  region: string | null
}

/** Reads of tokens; short statements on a read-only connection. */
export function tokenReads(connection: Connection, now: () => number = Date.now) {
  // Two look-ups and no join: measured 5 µs, where one statement over both tables takes 22 µs.
  const verifying = (column: 'public_id' | 'id') =>
    connection.prepare<[string], VerifyRow>(
      `SELECT id, organization_id, name, scopes, digest, hint, models, status, created_at, expires_at, last_used_at,
         user_id, origin_id, ${tokenLimitsColumns} FROM tokens WHERE ${column} = ?`,
    )
  const verify = verifying('public_id')
  const verifyId = verifying('id')
  const owner = connection.prepare<[string], OwnerRow>(
    `SELECT name, status, plan, region, ${organizationLimitsColumns} FROM organizations WHERE id = ?`,
  )
  const one = connection.prepare<[string, string], TokenRow>(
    `SELECT ${tokenColumns} FROM tokens WHERE organization_id = ? AND id = ?`,
  )
  const page = connection.prepare<[Record<string, string | number | null>], TokenRow>(
    `SELECT ${tokenColumns} FROM tokens WHERE organization_id = @organizationId AND (@after IS NULL OR id < @after)
       AND (@status IS NULL
         OR CASE WHEN status = 'active' AND expires_at <= @now THEN 'expired' ELSE status END = @status)
       AND (@userId IS NULL OR user_id = @userId)
     ORDER BY id DESC LIMIT @limit`,
  )
  const active = connection.prepare<[string, number, string], { tokens: number }>(
    `SELECT count(*) AS tokens FROM tokens WHERE organization_id = ? AND status = 'active'
       AND (expires_at IS NULL OR expires_at > ?) AND EXISTS (SELECT 1 FROM json_each(scopes) WHERE value = ?)`,
  )

  function verifiable(row: VerifyRow | undefined): VerifiableToken | undefined {
    const organization = row && owner.get(row.organization_id)
    if (!row || !organization) return undefined
    return {
      id: row.id,
      organizationId: row.organization_id,
      organizationName: organization.name,
      organizationStatus: organization.status,
      plan: organization.plan,
      organizationLimits: organizationLimitsOf(organization),
      region: organization.region,
      name: row.name,
      scopes: JSON.parse(row.scopes) as Scope[],
      digest: row.digest,
      hint: row.hint,
      models: row.models === null ? null : (JSON.parse(row.models) as string[]),
      limits: tokenLimitsOf(row),
      userId: row.user_id,
      originId: row.origin_id ?? row.id,
      status: row.status,
      createdAt: row.created_at,
      expiresAt: row.expires_at,
      lastUsedAt: row.last_used_at,
    }
  }

  return {
    'tokens.verify': publicId => verifiable(verify.get(publicId)),
    'tokens.verifyId': id => verifiable(verifyId.get(id)),
    'tokens.find'(organizationId, id) {
      const row = one.get(organizationId, id)
      return row && tokenOf(row, now())
    },
    'tokens.list'(organizationId, options) {
      const { limit, after = null, status = null, userId = null } = options
      return page.all({ organizationId, limit, after, status, userId, now: now() }).map(row => tokenOf(row, now()))
    },
    'tokens.countActive': (organizationId, scope, at) => active.get(organizationId, at, scope)?.tokens ?? 0,
  } satisfies Partial<Statements>
}
