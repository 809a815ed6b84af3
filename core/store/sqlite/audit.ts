import type { Statements } from '../method-table.ts'
import type { Actor, AuditEntry, AuditRecord, AuditTarget } from '../store.ts'
import { type Connection, scalar } from './database.ts'

/** How many entries a filtered page scans before it returns a cursor. */
const auditScan = 1000

/** Adds entries to the audit log, inside the transaction of the act that they record. */
export function openAudit(connection: Connection) {
  const insert = connection.prepare(
    `INSERT INTO audit_log (organization_id, at, actor, token_id, user_id, address, os_user, action, target_type,
       target_id, before, after) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const text = (fields: object | null): string | null => (fields === null ? null : JSON.stringify(fields))

  return ({ organizationId, at, actor, action, targetId, before, after }: AuditEntry): void => {
    const { kind, tokenId, userId, address, osUser } = actor
    const target = action.split('.', 1)[0]!
    const who = [kind, tokenId, userId, address, osUser] as const
    insert.run(organizationId, at, ...who, action, target, targetId, text(before), text(after))
  }
}

interface AuditRow {
  number: number
  organization_id: string
  at: number
  actor: Actor['kind']
  token_id: string | null
  user_id: string | null
  address: string | null
  os_user: string | null
  action: AuditEntry['action']
  target_type: AuditTarget
  target_id: string
  before: string | null
  after: string | null
}

const fields = (text: string | null) => (text === null ? null : (JSON.parse(text) as Record<string, unknown>))

const record = (row: AuditRow): AuditRecord => ({
  number: row.number,
  organizationId: row.organization_id,
  at: row.at,
  actor: {
    kind: row.actor,
    tokenId: row.token_id,
    userId: row.user_id,
    address: row.address,
    osUser: row.os_user,
  },
  action: row.action,
  targetType: row.target_type,
  targetId: row.target_id,
  before: fields(row.before),
  after: fields(row.after),
})

/** Reads of the audit log; short statements on a read-only connection. */
export function auditReads(connection: Connection, scan = auditScan) {
  const floor = scalar<[string, number, number], number>(
    connection,
    'SELECT number FROM audit_log WHERE organization_id = ? AND number < ? ORDER BY number DESC LIMIT 1 OFFSET ?',
  )
  const page = connection.prepare<[object], AuditRow>(
    `SELECT * FROM audit_log WHERE organization_id = :organizationId AND number < :before AND number >= :from
       AND at >= :since AND at <= :until AND (:action IS NULL OR action = :action)
       AND (:targetId IS NULL OR target_id = :targetId) ORDER BY number DESC LIMIT :limit`,
  )
  return {
    'audit.list'(organizationId, filter) {
      const { limit, before = Number.MAX_SAFE_INTEGER, action = null, targetId = null } = filter
      const { since = 0, until = Number.MAX_SAFE_INTEGER } = filter
      const from = floor.get(organizationId, before, scan - 1) ?? null
      const rows = page.all({
        organizationId,
        before,
        from: from ?? 0,
        since,
        until,
        action,
        targetId,
        limit: limit + 1,
      })
      const records = rows.slice(0, limit).map(record)
      return { records, next: rows.length > limit ? records.at(-1)!.number : from }
    },
  } satisfies Partial<Statements>
}
