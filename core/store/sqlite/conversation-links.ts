import { conflict, Failure } from '../../failure.ts'
import { maxConversationLinks as maxLinks } from '../conversation-link-records.ts'
import type { Statements } from '../method-table.ts'
import type {
  CallStorage,
  ConversationLink,
  ConversationMessage,
  LinkedConversation,
  OrganizationStatus,
} from '../store.ts'
import { openInsert, selected } from './columns.ts'
import { type ConversationRow, openConversationRows } from './conversations.ts'
import type { Connection } from './database.ts'

const fields = 'id, createdAt, expiresAt'

/** Commands of links to conversations. */
export function conversationLinkCommands(connection: Connection) {
  const find = openConversationRows(connection)
  const count = connection.scalar<number>`SELECT count(*) FROM conversation_links WHERE conversation = ?
    AND expires_at > ?`
  const insert = openInsert(connection, 'conversation_links', `${fields}, conversation, lastMessage`)
  const drop = connection.statement`DELETE FROM conversation_links WHERE conversation = ? AND id = ?`

  return {
    'conversationLinks.create'(owner, id, link) {
      const row = find(owner, id)
      if (!row) return undefined
      const { number: conversation, currentMessage: lastMessage } = row
      if (lastMessage === null) throw conflict('The conversation has no message that a link could show.')
      if (count.get(conversation, link.createdAt)! >= maxLinks)
        throw new Failure(
          'storage_full',
          `The conversation has ${maxLinks} links, which is the most. Revoke some of them.`,
        )
      insert({ ...link, conversation, lastMessage })
      return link
    },
    'conversationLinks.remove'(owner, conversation, id) {
      const row = find(owner, conversation)
      return row !== undefined && drop.run(row.number, id).changes > 0
    },
  } satisfies Statements
}

/** Deletes up to `limit` links whose time is over. Returns how many. */
export function forgetConversationLinks(connection: Connection) {
  const expired = connection.statement`DELETE FROM conversation_links WHERE id IN
    (SELECT id FROM conversation_links WHERE expires_at <= ? LIMIT ?)`
  return (now: number, limit: number): number => expired.run(now, limit).changes
}

interface LinkRow {
  conversation: number | null
  lastMessage: string
}
type TargetRow = Pick<ConversationRow, 'organizationId' | 'title'> & {
  callStorage: CallStorage
  status: Exclude<OrganizationStatus, 'deleted'>
}

/** Reads of links to conversations; short statements on a read-only connection. */
export function conversationLinkReads(connection: Connection) {
  const findOwn = openConversationRows(connection)
  const listed = connection.query<ConversationLink>`SELECT ${selected(fields)} FROM conversation_links
    WHERE conversation = ? AND expires_at > ?`
  const link = connection.query<LinkRow>`SELECT ${selected('conversation, lastMessage')} FROM conversation_links
    WHERE id = ?`
  const target = connection.query<TargetRow>`SELECT ${selected('organizationId, title', 'conversations')},
    ${selected('callStorage, status', 'organizations')}
    FROM conversations JOIN organizations ON organizations.id = conversations.organization_id
    WHERE conversations.number = ? AND organizations.status <> 'deleted'
      AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = conversations.owner AND users.removed_at IS NOT NULL)`
  const messages = connection.query<ConversationMessage>`SELECT id, parent, text, details FROM conversation_messages
    WHERE conversation = ? ORDER BY number`
  const messagesWith = connection.query<ConversationMessage>`WITH RECURSIVE branch (number, parent) AS (
      SELECT number, parent FROM conversation_messages WHERE conversation = :conversation AND id = :lastMessage
      UNION ALL
      SELECT before.number, before.parent FROM branch CROSS JOIN conversation_messages AS before
      ON before.conversation = :conversation AND before.id = branch.parent
    )
    SELECT message.id, message.parent, text, details FROM branch CROSS JOIN conversation_messages AS message
    ON message.number = branch.number WHERE instr(details, :text) > 0`

  function find(
    id: string,
    messagesOf: (conversation: number, lastMessage: string) => ConversationMessage[],
  ): LinkedConversation | null | undefined {
    const row = link.get(id)
    const found = row && row.conversation !== null ? target.get(row.conversation) : undefined
    if (!row || !found) return row && null
    const { status, ...shown } = found
    // Nobody outside learns that the organization is suspended.
    if (status === 'suspended') return undefined
    const { lastMessage } = row
    return { ...shown, lastMessage, messages: messagesOf(row.conversation!, lastMessage) }
  }

  return {
    'conversationLinks.list'(owner, conversation, now) {
      const row = findOwn(owner, conversation)
      // At most as many as a conversation may have.
      return row ? listed.all(row.number, now).toSorted((a, b) => (a.id < b.id ? 1 : -1)) : []
    },
    'conversationLinks.find': id => find(id, conversation => messages.all(conversation)),
    'conversationLinks.findWith': (id, text) =>
      find(id, (conversation, lastMessage) => messagesWith.all({ conversation, lastMessage, text })),
  } satisfies Statements
}
