import type { Statements } from '../method-table.ts'
import type { ResponseRecord } from '../store.ts'
import { openInsert, selected } from './columns.ts'
import type { Connection } from './database.ts'

const fields = 'organizationId, id, tokenId, previousId, jobId, request, input, answer, createdAt, expiresAt'

/** Commands of stored responses. */
export function responseCommands(connection: Connection) {
  const insert = openInsert(connection, 'responses', fields)
  const remove = connection.statement`DELETE FROM responses WHERE organization_id = ? AND id = ?`

  return {
    'responses.add': it => void insert(it),
    'responses.remove': (organizationId, id) => remove.run(organizationId, id).changes > 0,
  } satisfies Statements
}

/** Deletes up to `limit` responses that have expired. Returns how many. */
export function forgetResponses(connection: Connection) {
  const over = connection.statement`DELETE FROM responses WHERE rowid IN
    (SELECT rowid FROM responses WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)`
  return (now: number, limit: number): number => over.run(now, limit).changes
}

/** Deletes up to `limit` responses of an organization. Returns how many. */
export function eraseResponses(connection: Connection) {
  const some = connection.statement`DELETE FROM responses WHERE rowid IN
    (SELECT rowid FROM responses WHERE organization_id = ? LIMIT ?)`
  return (organizationId: string, limit: number): number => some.run(organizationId, limit).changes
}

export function responseReads(connection: Connection) {
  const one = connection.query<ResponseRecord>`SELECT ${selected(fields)} FROM responses WHERE organization_id = ?
    AND id = ? AND (expires_at IS NULL OR expires_at > ?)`
  return {
    'responses.find': (organizationId, id, now) => one.get(organizationId, id, now),
  } satisfies Statements
}
