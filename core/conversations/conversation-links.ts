import type { KeyObject } from 'node:crypto'
import type { Caller } from '../accounts/accounts.ts'
import { Failure } from '../failure.ts'
import { isId, newId } from '../ids.ts'
import { isFuture, isSame, signature } from '../signed-text.ts'
import type { ConversationLink, Store } from '../store/store.ts'
import { ownerOf, requireStorage } from './owner.ts'
import { type SharedMessage, sharedMessages } from './shared-messages.ts'

/** How long a link may live, seconds. */
export const linkLifetimes = { least: 3_600, most: 30 * 86_400 }

/** What whoever has a link reads. */
export interface SharedConversation {
  organizationId: string
  title: string
  /** Epoch milliseconds. */
  expiresAt: number
  messages: SharedMessage[]
}

const signedText = (id: string, expires: string): string => `READ\n/shared/${id}\n${expires}`

/** Links with which anybody reads a conversation: signed, until a time, and until they are revoked. */
export function openConversationLinks({
  store: { conversationLinks: links },
  key,
  clock,
}: {
  store: Pick<Store, 'conversationLinks'>
  /** Signs the links. */
  key: KeyObject
  clock: { now(): number }
}) {
  return {
    /**
     * Creates a link to the branch that is shown now, which lives for so many seconds. Undefined: there is no such conversation.
     * Rejects with Failure `role_not_allowed` where the organization stores no content, `conflict` and `storage_full`.
     */
    async create(caller: Caller, conversation: string, lifetime: number): Promise<ConversationLink | undefined> {
      requireStorage(caller)
      const createdAt = clock.now()
      const expiresAt = (Math.floor(createdAt / 1000) + lifetime) * 1000
      return links.create(ownerOf(caller), conversation, { id: newId('link'), createdAt, expiresAt })
    },
    list: (caller: Caller, conversation: string): Promise<ConversationLink[]> =>
      links.list(ownerOf(caller), conversation, clock.now()),
    remove: (caller: Caller, conversation: string, id: string): Promise<boolean> =>
      links.remove(ownerOf(caller), conversation, id),
    /** The token in the address of a link, which is the right to read. */
    tokenOf({ id, expiresAt }: Pick<ConversationLink, 'id' | 'expiresAt'>): string {
      const expires = String(expiresAt / 1000)
      return `${id}.${expires}.${signature(key, signedText(id, expires))}`
    },
    /** Undefined: this server has not signed the token. Rejects with Failure `output_expired`, which says why nothing is shown. */
    async open(token: string): Promise<SharedConversation | undefined> {
      const [id = '', expires = '', given = ''] = token.split('.')
      if (!isId(id, 'link_') || !isSame(given, signature(key, signedText(id, expires)))) return undefined
      if (!isFuture(expires, clock.now())) throw over('The time of this link is over.')
      const found = await links.find(id)
      if (found === undefined) throw over('This link was revoked.')
      if (found === null) throw over('The conversation of this link was deleted.')
      if (found.callStorage !== 'content')
        throw over('The organization of this conversation no longer stores content, so its links show nothing.')
      const { organizationId, title, messages, lastMessage } = found
      const expiresAt = Number(expires) * 1000
      return { organizationId, title, expiresAt, messages: sharedMessages(messages, lastMessage) }
    },
  }
}
const over = (why: string) => new Failure('output_expired', `${why} Ask whoever sent it to you for another one.`)
