import { Failure, invalid } from '../../failure.ts'
import { definedMembers } from '../../members.ts'
import type { Statements } from '../method-table.ts'
import {
  type ConversationMessage,
  type ConversationOwner,
  type ConversationRecord,
  conversationLimits as limits,
} from '../store.ts'
import { openInsert, openUpdate, selected, withChanges } from './columns.ts'
import type { Connection } from './database.ts'

const changing = 'title, folder, system, parameters, currentMessage, revision, messages, updatedAt'
const fields = `organizationId, id, owner, createdAt, ${changing}`
export type ConversationRow = ConversationRecord & { number: number; length: number }
type MessageRow = ConversationMessage & { number: number }

/** Texts that one read returns, in characters, unless the first is longer: half a millisecond of the thread. */
const textsAtOnce = 128 << 10

const lengthOf = ({ text, details }: Pick<ConversationMessage, 'text' | 'details'>) => text.length + details.length

/** Finds the conversations of an owner. */
export const openConversationRows = (connection: Connection) => {
  const one = connection.query<ConversationRow>`SELECT number, length, ${selected(fields)} FROM conversations WHERE id = ?
    AND organization_id = ? AND owner = ?`
  return ({ organizationId, owner }: ConversationOwner, id: string) => one.get(id, organizationId, owner)
}
const recordOf = ({ number: _number, length: _length, ...record }: ConversationRow): ConversationRecord => record

/** Commands of conversations. */
export function conversationCommands(connection: Connection) {
  const find = openConversationRows(connection)
  const count = connection.scalar<number>`SELECT count(*) FROM conversations WHERE organization_id = ? AND owner = ?`
  const insert = openInsert(connection, 'conversations', `${fields}, length`)
  const change = openUpdate(connection, 'conversations', `${changing}, length`, 'number')
  const message = connection.query<MessageRow>`SELECT number, id, parent, text, details FROM conversation_messages
    WHERE conversation = ? AND id = ?`
  const insertMessage = openInsert(connection, 'conversation_messages', 'conversation, id, parent, text, details')
  const changeMessage = openUpdate(connection, 'conversation_messages', 'text, details', 'number')
  const move = connection.statement`UPDATE conversations SET folder = :to, revision = revision + 1
    WHERE organization_id = :organizationId AND owner = :owner AND folder = :folder`
  const drop = connection.statement`DELETE FROM conversations WHERE id = ? AND organization_id = ? AND owner = ?`

  /** Writes the messages, checks the branch that is shown, and the size of the whole. */
  function write(row: ConversationRow, messages: readonly ConversationMessage[]): ConversationRecord {
    for (const one of messages) {
      const before = message.get(row.number, one.id)
      if (before) {
        if (before.parent !== one.parent)
          throw invalid('messages', `The message '${one.id}' follows another one already. Give the new one its own id.`)
        changeMessage({ ...one, number: before.number })
        row.length += lengthOf(one) - lengthOf(before)
        continue
      }
      if (one.parent !== null && !message.get(row.number, one.parent))
        throw invalid(
          'messages',
          `The message '${one.id}' follows '${one.parent}', which does not exist. Send that one before it.`,
        )
      insertMessage({ ...one, conversation: row.number })
      row.messages++
      row.length += lengthOf(one)
    }
    if (row.currentMessage !== null && !message.get(row.number, row.currentMessage))
      throw invalid('current_id', `The conversation has no message '${row.currentMessage}'.`)
    if (row.messages > limits.messages)
      throw tooLarge(`may have ${limits.messages} messages, and would have ${row.messages}`)
    if (row.length > limits.length) throw tooLarge(`may have ${limits.length} characters, and would have ${row.length}`)
    change(row)
    return recordOf(row)
  }

  return {
    'conversations.create'({ messages, ...it }) {
      if (count.get(it.organizationId, it.owner)! >= limits.perOwner)
        throw new Failure(
          'storage_full',
          `There are ${limits.perOwner} conversations, which is the most. Delete some of them.`,
        )
      const length = it.system.length + it.parameters.length
      const row = { ...it, revision: 1, messages: 0, length, updatedAt: it.createdAt }
      // The current message is checked once the messages are there.
      const { lastInsertRowid } = insert(row)
      return write({ ...row, number: Number(lastInsertRowid) }, messages)
    },

    'conversations.update'(owner, id, { messages, at, revision, ...changed }) {
      const row = find(owner, id)
      if (!row) return undefined
      if (revision !== undefined && revision !== row.revision)
        throw new Failure(
          'version_conflict',
          `The conversation has revision ${row.revision}, and the change was made of ${revision}. Read it again.`,
          { facts: { revision: row.revision } },
        )
      const isOnlyMoved = messages.length === 0 && Object.keys(definedMembers(changed)).join() === 'folder'
      const updatedAt = isOnlyMoved ? row.updatedAt : at
      const after = { ...withChanges(row, changed), revision: row.revision + 1, updatedAt }
      after.length += after.system.length + after.parameters.length - row.system.length - row.parameters.length
      return write(after, messages)
    },

    'conversations.moveFolder': ({ organizationId, owner }, folder, to) =>
      move.run({ organizationId, owner, folder, to }).changes,

    'conversations.remove': ({ organizationId, owner }, id) => drop.run(id, organizationId, owner).changes > 0,
  } satisfies Statements
}

const tooLarge = (what: string) =>
  new Failure('payload_too_large', `A conversation ${what}. Begin another one.`, { param: 'messages' })

/** Deletes up to `limit` conversations of an organization. Returns how many. */
export function eraseConversations(connection: Connection) {
  const some = connection.statement`DELETE FROM conversations WHERE number IN
    (SELECT number FROM conversations WHERE organization_id = ? LIMIT ?)`
  return (organizationId: string, limit: number): number => some.run(organizationId, limit).changes
}

/**
 * Deletes up to `limit` conversations whose user was removed, or whose token was revoked for good. Returns how many. A
 * CROSS JOIN keeps the order: removed users and revoked tokens are few.
 */
export function forgetConversations(connection: Connection) {
  const users = connection.statement`DELETE FROM conversations WHERE number IN
    (SELECT conversations.number FROM users CROSS JOIN conversations ON conversations.organization_id = users.organization_id
    AND conversations.owner = users.id WHERE users.removed_at IS NOT NULL LIMIT ?)`
  const tokens = connection.statement`DELETE FROM conversations WHERE number IN
    (SELECT conversations.number FROM tokens CROSS JOIN conversations
    ON conversations.organization_id = tokens.organization_id AND conversations.owner = tokens.id
    WHERE tokens.status = 'revoked' AND NOT EXISTS (SELECT 1 FROM tokens AS next
      WHERE next.organization_id = tokens.organization_id AND next.origin_id = tokens.id AND next.status <> 'revoked')
    LIMIT ?)`
  return (limit: number): number => users.run(limit).changes + tokens.run(limit).changes
}

/** Reads of conversations; short statements on a read-only connection. */
export function conversationReads(connection: Connection) {
  const find = openConversationRows(connection)
  const listed = (and = '') => connection.query<ConversationRecord>`SELECT ${selected(fields)} FROM conversations
    INDEXED BY conversations_newest
    WHERE organization_id = :organizationId AND owner = :owner AND (updated_at, number) < (:at, :number) ${and}
    ORDER BY updated_at DESC, number DESC LIMIT :limit`
  const page = listed()
  const pageOfFolder = listed('AND folder IS :folder')
  const messages = connection.query<MessageRow>`SELECT number, id, parent, text, details FROM conversation_messages
    WHERE conversation = ? AND number >= ? ORDER BY number`
  const folders = connection.scalar<string>`SELECT DISTINCT folder FROM conversations WHERE organization_id = ?
    AND owner = ? AND folder IS NOT NULL`

  return {
    'conversations.find'(owner, id) {
      const row = find(owner, id)
      return row && recordOf(row)
    },
    'conversations.messages'(owner, id) {
      const row = find(owner, id)
      return row ? messages.all(row.number, 0).map(({ number: _number, ...one }) => one) : []
    },
    'conversations.list'({ organizationId, owner }, { limit, after, folder }) {
      const last = after === undefined ? undefined : find({ organizationId, owner }, after)
      if (after !== undefined && !last) return []
      const from = { at: last?.updatedAt ?? Number.MAX_SAFE_INTEGER, number: last?.number ?? 0 }
      const given = { organizationId, owner, limit, ...from }
      return folder === undefined ? page.all(given) : pageOfFolder.all({ ...given, folder })
    },
    'conversations.texts'(owner, id, from) {
      const row = find(owner, id)
      const texts: string[] = []
      let length = 0
      for (const { number, text } of row ? messages.iterate(row.number, from) : []) {
        if (length > textsAtOnce) return { texts, next: number }
        texts.push(text)
        length += text.length
      }
      return { texts, next: null }
    },
    'conversations.folders': ({ organizationId, owner }) => folders.all(organizationId, owner).toSorted(),
  } satisfies Statements
}
