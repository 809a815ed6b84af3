import type { Statements } from '../method-table.ts'
import type { SessionRecord } from '../store.ts'
import type { Connection } from './database.ts'

/** Sessions of one token; beginning another one ends the oldest. */
const sessionsPerToken = 50

/** Commands of the sessions of the web console. */
export function sessionCommands(connection: Connection) {
  const insert = connection.prepare(
    'INSERT INTO sessions (digest, token_id, created_at, expires_at) VALUES (?, ?, ?, ?)',
  )
  const extend = connection.prepare('UPDATE sessions SET expires_at = ? WHERE digest = ? AND expires_at < ?')
  const remove = connection.prepare('DELETE FROM sessions WHERE digest = ?')
  const removeExpired = connection.prepare(
    'DELETE FROM sessions WHERE digest IN (SELECT digest FROM sessions WHERE expires_at <= ? LIMIT 100)',
  )
  const removeOldest = connection.prepare(
    `DELETE FROM sessions WHERE digest IN
       (SELECT digest FROM sessions WHERE token_id = ? ORDER BY created_at DESC LIMIT -1 OFFSET ?)`,
  )
  return {
    'sessions.add'({ digest, tokenId, createdAt, expiresAt }) {
      removeExpired.run(createdAt)
      insert.run(Buffer.from(digest), tokenId, createdAt, expiresAt)
      removeOldest.run(tokenId, sessionsPerToken)
    },
    'sessions.extend'(these) {
      for (const { digest, expiresAt } of these) extend.run(expiresAt, Buffer.from(digest), expiresAt)
    },
    'sessions.remove': digest => void remove.run(Buffer.from(digest)),
  } satisfies Partial<Statements>
}

export function sessionReads(connection: Connection) {
  const one = connection.query<SessionRecord>(
    'SELECT digest, token_id AS tokenId, created_at AS createdAt, expires_at AS expiresAt FROM sessions WHERE digest = ?',
  )
  return { 'sessions.find': digest => one.get(Buffer.from(digest)) } satisfies Partial<Statements>
}
