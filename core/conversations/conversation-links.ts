import type { KeyObject } from 'node:crypto'
import type { Caller } from '../accounts/accounts.ts'
import { Failure } from '../failure.ts'
import { isId, newId } from '../ids.ts'
import { isFuture, isSame, signature } from '../signed-text.ts'
import type { ConversationLink, LinkedConversation, Store } from '../store/store.ts'
import { branchOf } from './markdown.ts'
import { ownerOf, requireStorage } from './owner.ts'
import { type SharedMessage, sharedMessages } from './shared-messages.ts'

/** How long a link may live, seconds. */
export const linkLifetimes = { least: 3_600, most: 30 * 86_400 }

/** What whoever has a link reads. */
export interface SharedConversation {
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
  /** Returns the id of the link of a token. Undefined: this server has not signed it. Throws Failure `output_expired`. */
  function linkOf(token: string): { id: string; expires: string } | undefined {
    const [id = '', expires = '', given = ''] = token.split('.')
    if (!isId(id, 'link_') || !isSame(given, signature(key, signedText(id, expires)))) return undefined
    if (!isFuture(expires, clock.now())) throw over('The time of this link is over.')
    return { id, expires }
  }

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
      const link = linkOf(token)
      if (!link) return undefined
      const { title, messages, lastMessage } = shownBy(await links.find(link.id))
      const expiresAt = Number(link.expires) * 1000
      return { title, expiresAt, messages: sharedMessages(branchOf(messages, lastMessage)) }
    },
    /**
     * Returns the organization of an image that a message of the link shows, and reads no other messages. Null: none shows it.
     * Undefined, and rejects, as `open` does.
     */
    async ownerOfImage(token: string, image: string): Promise<string | null | undefined> {
      const link = linkOf(token)
      if (!link) return undefined
      if (!isId(image, 'file-')) return null
      const { organizationId, messages } = shownBy(await links.findWith(link.id, image))
      const isShown = sharedMessages(messages).some(({ files }) =>
        files.some(({ id, kind }) => id === image && kind === 'image'),
      )
      return isShown ? organizationId : null
    },
  }
}

/** Throws Failure `output_expired` for a link that shows nothing more. */
function shownBy(found: LinkedConversation | null | undefined): LinkedConversation {
  if (found === undefined) throw over('This link was revoked.')
  if (found === null) throw over('The conversation of this link was deleted.')
  if (found.callStorage !== 'content')
    throw over('The organization of this conversation no longer stores content, so its links show nothing.')
  return found
}
const over = (why: string) => new Failure('output_expired', `${why} Ask whoever sent it to you for another one.`)
