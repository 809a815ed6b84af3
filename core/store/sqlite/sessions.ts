import type { Statements } from '../method-table.ts'
import type { SessionRecord } from '../store.ts'
import { openInsert, selected } from './columns.ts'
import type { Connection } from './database.ts'

const fields = 'digest, tokenId, createdAt, expiresAt'

/** Sessions of one token; beginning another one ends the oldest. */
const sessionsPerToken = 50

/** Commands of the sessions of the web console. */
export function sessionCommands(connection: Connection) {
  const insert = openInsert(connection, 'sessions', fields)
  const extend = connection.statement`UPDATE sessions SET expires_at = ? WHERE digest = ? AND expires_at < ?`
  const remove = connection.statement`DELETE FROM sessions WHERE digest = ?`
  const removeExpired = connection.statement`DELETE FROM sessions WHERE digest IN
    (SELECT digest FROM sessions WHERE expires_at <= ? LIMIT 100)`
  const removeOldest = connection.statement`DELETE FROM sessions WHERE digest IN
    (SELECT digest FROM sessions WHERE token_id = ? ORDER BY created_at DESC LIMIT -1 OFFSET ?)`
  return {
    'sessions.add'(session) {
      removeExpired.run(session.createdAt)
      insert(session)
      removeOldest.run(session.tokenId, sessionsPerToken)
    },
    'sessions.extend'(these) {
      for (const { digest, expiresAt } of these) extend.run(expiresAt, Buffer.from(digest), expiresAt)
    },
    'sessions.remove': digest => void remove.run(Buffer.from(digest)),
  } satisfies Statements
}

export function sessionReads(connection: Connection) {
  const one = connection.query<SessionRecord>`SELECT ${selected(fields)} FROM sessions WHERE digest = ?`
  return { 'sessions.find': digest => one.get(Buffer.from(digest)) } satisfies Statements
}
