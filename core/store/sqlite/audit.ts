import { withoutQuery } from '../audit-fields.ts'
import type { Statements } from '../method-table.ts'
import type { Actor, AuditEntry, AuditRecord } from '../store.ts'
import { openInsert, pageOf, type RowOf, selected, withJson } from './columns.ts'
import type { Connection } from './database.ts'

/** How many entries a filtered page scans before it returns a cursor. */
const auditScan = 1000

const fields = `organizationId, at, actor, tokenId, userId, address, osUser, action, targetType, targetId, before, after`

/** An act of `by` on the object with this id. */
type NewAuditEntry = Pick<AuditEntry, 'organizationId' | 'at' | 'action'> & { id: string; by: Actor } & Partial<
    Pick<AuditEntry, 'before' | 'after'>
  >

/** Adds entries to the audit log, inside the transaction of the act that they record. */
export function openAudit(connection: Connection) {
  const insert = openInsert(connection, 'audit_log', fields)
  return ({ id: targetId, by, action, before, after, ...entry }: NewAuditEntry): void => {
    const changed = { before: before && withoutQuery(before), after: after && withoutQuery(after) }
    insert({ ...entry, ...changed, ...by, actor: by.kind, action, targetId, targetType: action.split('.', 1)[0] })
  }
}

/** The writer's command for acts that change nothing in the store. */
export const auditCommands = (audit: ReturnType<typeof openAudit>) =>
  ({
    'audit.record'({ actor: by, targetId: id, ...entry }) {
      audit({ ...entry, id, by })
    },
  }) satisfies Statements

type AuditRow = RowOf<Omit<AuditRecord, 'actor'>, 'before' | 'after'> & Omit<Actor, 'kind'> & { actor: Actor['kind'] }

const record = ({ actor: kind, tokenId, userId, address, osUser, ...row }: AuditRow): AuditRecord => ({
  ...withJson(row, 'before', 'after'),
  actor: { kind, tokenId, userId, address, osUser },
})

/** Reads of the audit log; short statements on a read-only connection. */
export function auditReads(connection: Connection, scan = auditScan) {
  const floor = connection.scalar<number>`SELECT number FROM audit_log WHERE organization_id = ? AND number < ?
    ORDER BY number DESC LIMIT 1 OFFSET ?`
  const page = connection.query<AuditRow>`SELECT ${selected(`number, ${fields}`)} FROM audit_log
    WHERE organization_id = :organizationId AND number < :before AND number >= :from AND at >= :since AND at <= :until
    AND (:action IS NULL OR action = :action) AND (:targetId IS NULL OR target_id = :targetId) ORDER BY number DESC
    LIMIT :limit`
  const newestEntry = connection.scalar<number | null>`SELECT max(number) FROM audit_log`
  const ofAccounts = connection.scalar<number>`SELECT EXISTS (SELECT 1 FROM audit_log WHERE number > ?
    AND target_type IN ('organization', 'user', 'token'))`
  return {
    'audit.accountsChanged'(after) {
      const newest = newestEntry.get() ?? 0
      return { newest, changed: newest > after && ofAccounts.get(after) === 1 }
    },
    'audit.list'(organizationId, filter) {
      const { limit, before = Number.MAX_SAFE_INTEGER, action = null, targetId = null } = filter
      const { since = 0, until = Number.MAX_SAFE_INTEGER } = filter
      const from = floor.get(organizationId, before, scan - 1) ?? null
      const query = { organizationId, before, from: from ?? 0, since, until, action, targetId, limit: limit + 1 }
      const { page: rows, next } = pageOf(page.all(query), limit)
      return { records: rows.map(record), next: next?.number ?? from }
    },
  } satisfies Statements
}
