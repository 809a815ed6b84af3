import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import { string } from '../../../core/schemas/fields.ts'
import type { ConversationLink as LinkRecord } from '../../../core/store/store.ts'
import { deletedAnswer } from '../../http/answer/page.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import {
  ConversationLink,
  ConversationLinkCreate,
  ConversationLinkDeleted,
  ConversationLinks,
  linkView,
} from '../../views/conversation-link-record.ts'
import { noConversation } from './conversations.ts'

const route = routeOf({ tag: 'Conversations' })
const base = '/api/conversations/:id/links'
const Conversation = z.object({ id: string('Id of the conversation: `conv_…`.') })
const One = Conversation.extend({ link: string('Id of the link: `link_…`.') })

/** The routes with which the owner of a conversation makes links to it, and revokes them. */
export function conversationLinkRoutes({ conversations }: Owners<'conversations'>) {
  const view = (link: LinkRecord, { origin }: ClientExchange) =>
    linkView(link, `${origin}/shared/${conversations.links.tokenOf(link)}`)

  /** Throws Failure `not_found` unless the conversation is one of the caller. */
  async function requireConversation(id: string, { caller }: ClientExchange): Promise<void> {
    if (!isId(id, 'conv_') || !(await conversations.find(caller, id))) throw noConversation(id)
  }

  return [
    route(`GET ${base}`, 'user:read', {
      summary: 'List links of conversation',
      description: 'Returns the links with which others read the conversation. Those that have expired are not listed.',
      errorCodes: ['not_found'],
      params: Conversation,
      response: ConversationLinks,
      handle: async ({ params: { id } }, exchange) => {
        await requireConversation(id, exchange)
        const found = await conversations.links.list(exchange.caller, id)
        return { links: found.map(link => view(link, exchange)) }
      },
    }),
    route(`POST ${base}`, 'user:write', {
      bucket: 'api',
      summary: 'Create link to conversation',
      description:
        'Returns a signed address with which anybody reads the conversation without a token, until it expires or is revoked. Its page shows what people and models have said in the branch that is shown now, with images: no system prompt, no reasoning, no tools, and nothing that is said later. At most 20 links of a conversation.',
      errorCodes: ['not_found', 'role_not_allowed', 'conflict', 'storage_full'],
      status: 201,
      params: Conversation,
      body: ConversationLinkCreate,
      example: { expires_in: 86_400 },
      response: ConversationLink,
      handle: async ({ params: { id }, body }, exchange) => {
        await requireConversation(id, exchange)
        const link = await conversations.links.create(exchange.caller, id, body.expires_in)
        if (!link) throw new Failure('not_found', `The conversation '${id}' was deleted.`)
        return view(link, exchange)
      },
    }),
    route(`DELETE ${base}/:link`, 'user:write', {
      summary: 'Revoke link to conversation',
      description: 'Whoever has the link can read nothing more with it, from now on.',
      errorCodes: ['not_found'],
      params: One,
      response: ConversationLinkDeleted,
      handle: async ({ params: { id, link } }, exchange) => {
        await requireConversation(id, exchange)
        if (!isId(link, 'link_') || !(await conversations.links.remove(exchange.caller, id, link)))
          throw new Failure('not_found', `The conversation has no link '${link.slice(0, 64)}'.`)
        return deletedAnswer('conversation_link', link)
      },
    }),
  ]
}
