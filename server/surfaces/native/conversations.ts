import { z } from 'zod'
import { markdownOf } from '../../../core/conversations/markdown.ts'
import { Failure } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import { optionalStringUpTo, string } from '../../../core/schemas/fields.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { type ConversationMessage, type ConversationRecord, conversationLimits } from '../../../core/store/store.ts'
import { deletedAnswer, deletedObject, pageEnd, pageQuery } from '../../http/answer/page.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { queryOf } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'
import {
  Conversation,
  ConversationCreate,
  ConversationFolderUpdate,
  ConversationFolderUpdated,
  ConversationPage,
  ConversationUpdate,
  ConversationWithMessages,
  changeOf,
  conversationText,
  conversationView,
  fieldsOf,
} from '../../views/conversation-record.ts'

const route = routeOf({ tag: 'Conversations' })
const base = '/api/conversations'
const One = z.object({ id: string('Id of the conversation: `conv_…`.') })
const Deleted = deletedObject(
  'ConversationDeleted',
  'Confirms that a conversation was deleted.',
  ['conversation', 'conversation'],
  {},
)

const ExportQuery = z.strictObject({
  format: z.enum(['json', 'markdown']).default('json').describe('Form of the file.'),
})

/** Why a conversation is not found. */
export const noConversation = (id: string): Failure =>
  new Failure('not_found', `There is no conversation '${id.slice(0, 64)}'. GET ${base} lists yours.`)
const size = `At most ${conversationLimits.messages} messages with ${conversationLimits.length} characters altogether.`
const changeErrors = ['role_not_allowed', 'payload_too_large'] as const

/** The routes of conversations. Each is reached only by its owner: the user of the token, or a token without one. */
export function conversationRoutes({ conversations }: Owners<'conversations'>) {
  /** Returns a conversation of the caller with its messages. Throws Failure `not_found`. */
  async function read(
    id: string,
    { caller }: ClientExchange,
  ): Promise<{ record: ConversationRecord; messages: ConversationMessage[] }> {
    const record = isId(id, 'conv_') ? await conversations.find(caller, id) : undefined
    if (!record) throw noConversation(id)
    return { record, messages: await conversations.messages(caller, id) }
  }

  return [
    route(`GET ${base}`, 'user:read', {
      summary: 'List conversations',
      description:
        'Returns the conversations of the user of the token, or of a token without a user: those changed last come first. A search reads at most 1,000 of them at once, so a page may have fewer entries although there are more.',
      query: z.strictObject({
        search: optionalStringUpTo(200, 'Words that the title or a message must contain, in any case.'),
        folder: optionalStringUpTo(100, 'Only those in this folder; empty: only those in none.'),
        ...pageQuery(id => isId(id, 'conv_')),
      }),
      response: ConversationPage,
      handle: async ({ query }, { caller }) => {
        const [{ found, next }, folders] = await Promise.all([
          conversations.list(caller, { ...query, folder: query.folder === '' ? null : query.folder }),
          conversations.folders(caller),
        ])
        const stored = caller.token.callStorage === 'content'
        return { conversations: found.map(conversationView), folders, stored, ...pageEnd(next) }
      },
    }),
    route(`POST ${base}`, 'user:write', {
      bucket: 'api',
      summary: 'Create conversation',
      description: `Keeps a conversation. Without a title it gets the first words of its first message. ${size}`,
      errorCodes: [...changeErrors, 'storage_full'],
      status: 201,
      body: ConversationCreate,
      example: { messages: [{ id: 'm1', parent_id: null, role: 'user', text: 'Hello' }], current_id: 'm1' },
      response: Conversation,
      handle: async ({ body }, { caller }) => conversationView(await conversations.create(caller, fieldsOf(body))),
    }),
    route(`GET ${base}/:id`, 'user:read', {
      summary: 'Get conversation',
      description:
        'Returns a conversation with all its messages. They are a tree: each names the message that it follows, and messages that follow the same one are branches.',
      errorCodes: ['not_found'],
      params: One,
      response: ConversationWithMessages,
      handle: async ({ params }, exchange) => {
        const { record, messages } = await read(params.id, exchange)
        return new JsonText(conversationText(record, messages))
      },
    }),
    route(`PATCH ${base}/:id`, 'user:write', {
      summary: 'Update conversation',
      description: `Changes a conversation, and adds messages or replaces those with the same ids. With \`revision\` it is refused if the conversation has another one by now. ${size}`,
      errorCodes: ['not_found', 'version_conflict', ...changeErrors],
      params: One,
      body: ConversationUpdate,
      example: { title: 'Greetings', folder: 'Private' },
      response: Conversation,
      handle: async ({ params: { id }, body }, { caller }) => {
        const updated = isId(id, 'conv_') ? await conversations.update(caller, id, changeOf(body)) : undefined
        if (!updated) throw noConversation(id)
        return conversationView(updated)
      },
    }),
    route(`DELETE ${base}/:id`, 'user:write', {
      summary: 'Delete conversation',
      description: 'Deletes a conversation with all its messages for good. Files that messages name stay.',
      errorCodes: ['not_found'],
      params: One,
      response: Deleted,
      handle: async ({ params: { id } }, { caller }) => {
        if (!isId(id, 'conv_') || !(await conversations.remove(caller, id))) throw noConversation(id)
        return deletedAnswer('conversation', id)
      },
    }),
    route('PATCH /api/conversation-folders', 'user:write', {
      summary: 'Update folder of conversations',
      description:
        'Moves all conversations of a folder to another one, or to none. A folder is there as long as a conversation is in it.',
      errorCodes: ['not_found', 'role_not_allowed'],
      body: ConversationFolderUpdate,
      example: { folder: 'Private', to: 'Work' },
      response: ConversationFolderUpdated,
      handle: async ({ body: { folder, to } }, { caller }) => {
        const moved = await conversations.moveFolder(caller, folder, to)
        if (moved === 0) throw new Failure('not_found', `There is no folder '${folder}'. GET ${base} lists yours.`)
        return { moved }
      },
    }),
    route(`GET ${base}/:id/export`, 'user:read', {
      summary: 'Export conversation',
      description: 'Returns a conversation as a file: JSON with all branches, or Markdown of the branch that is shown.',
      errorCodes: ['not_found'],
      params: One,
      query: ExportQuery,
      media: ['application/json', 'text/markdown'],
      answer: async exchange => {
        const { format } = parsed(ExportQuery, queryOf(exchange))
        const { record, messages } = await read(exchange.params['id'] ?? '', exchange)
        const [text, type, ending] =
          format === 'json'
            ? [conversationText(record, messages), 'application/json', 'json']
            : [markdownOf(record, messages), 'text/markdown; charset=utf-8', 'md']
        exchange.send(200, text, type, [
          'content-disposition',
          `attachment; filename="${record.id}.${ending}"`,
          'cache-control',
          'no-store',
        ])
      },
    }),
  ]
}
