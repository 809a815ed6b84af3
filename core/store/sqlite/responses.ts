import type { Statements } from '../method-table.ts'
import type { ResponseRecord } from '../store.ts'
import type { Connection } from './database.ts'

/** Commands of stored responses. */
export function responseCommands(connection: Connection) {
  const insert = connection.prepare(
    `INSERT INTO responses (organization_id, id, token_id, previous_id, job_id, request, input, answer, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const remove = connection.prepare('DELETE FROM responses WHERE organization_id = ? AND id = ?')

  return {
    'responses.add'(it) {
      const { organizationId, id, tokenId, previousId, jobId, request, input, answer, createdAt, expiresAt } = it
      insert.run(organizationId, id, tokenId, previousId, jobId, request, input, answer, createdAt, expiresAt)
    },
    'responses.remove': (organizationId, id) => remove.run(organizationId, id).changes > 0,
  } satisfies Partial<Statements>
}

/** Deletes up to `limit` responses that have expired. Returns how many. */
export function forgetResponses(connection: Connection) {
  const over = connection.prepare(
    `DELETE FROM responses WHERE rowid IN
       (SELECT rowid FROM responses WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)`,
  )
  return (now: number, limit: number): number => over.run(now, limit).changes
}

/** Deletes up to `limit` responses of an organization. Returns how many. */
export function eraseResponses(connection: Connection) {
  const some = connection.prepare(
    'DELETE FROM responses WHERE rowid IN (SELECT rowid FROM responses WHERE organization_id = ? LIMIT ?)',
  )
  return (organizationId: string, limit: number): number => some.run(organizationId, limit).changes
}

export function responseReads(connection: Connection) {
  const one = connection.query<ResponseRecord>(
    `SELECT organization_id AS organizationId, id, token_id AS tokenId, previous_id AS previousId, job_id AS jobId, request,
       input, answer, created_at AS createdAt, expires_at AS expiresAt
     FROM responses WHERE organization_id = ? AND id = ? AND (expires_at IS NULL OR expires_at > ?)`,
  )
  return {
    'responses.find': (organizationId, id, now) => one.get(organizationId, id, now),
  } satisfies Partial<Statements>
}
