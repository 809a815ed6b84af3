import type { KeyObject } from 'node:crypto'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { Caller } from '../accounts/accounts.ts'
import { newId } from '../ids.ts'
import type {
  ConversationChange,
  ConversationMessage,
  ConversationOwner,
  ConversationRecord,
  NewConversation,
  Store,
} from '../store/store.ts'
import { openConversationLinks } from './conversation-links.ts'
import { ownerOf, requireStorage } from './owner.ts'
import { titleOf } from './title.ts'

/** Conversations that one search reads at most, so that it ends; the next page goes on behind them. */
const searchedAtOnce = 1_000

type Fields = Omit<NewConversation, keyof ConversationOwner | 'id' | 'createdAt' | 'title'> & {
  /** Absent: the first words of the first message. */
  title?: string | undefined
}

export interface ConversationQuery {
  limit: number
  after?: string | undefined
  /** Only those in this folder; null: only those in none. */
  folder?: string | null | undefined
  /** Words that the title or a message must contain as they are, in any case. */
  search?: string | undefined
}

/** Conversations that are kept for people, where their organization stores content. */
export function openConversations({
  store,
  key,
  clock = Date,
}: {
  store: Pick<Store, 'conversations' | 'conversationLinks'>
  /** Signs the links. */
  key: KeyObject
  clock?: { now(): number }
}) {
  const { conversations } = store
  /** Whether a title or text contains the words, which are in lower case. Yields to the event loop after each read. */
  async function contains(owner: ConversationOwner, { id, title }: ConversationRecord, words: string) {
    if (title.toLowerCase().includes(words)) return true
    for (let from: number | null = 0; from !== null; ) {
      const { texts, next } = await conversations.texts(owner, id, from)
      if (texts.some(text => text.toLowerCase().includes(words))) return true
      from = next
      await nextIteration()
    }
    return false
  }

  return {
    /** Returns a page, those changed last first; `next` is the cursor of the next page, null at the end. */
    async list(
      caller: Caller,
      { search = '', limit, after, folder }: ConversationQuery,
    ): Promise<{ found: ConversationRecord[]; next: string | null }> {
      const owner = ownerOf(caller)
      const words = search.trim().toLowerCase()
      const found: ConversationRecord[] = []
      for (let read = 0, from = after; ; ) {
        const page = await conversations.list(owner, { limit: limit + 1, after: from, folder })
        for (const one of page) {
          if (found.length === limit || read === searchedAtOnce) return { found, next: from ?? null }
          from = one.id
          read++
          if (words === '' || (await contains(owner, one, words))) found.push(one)
        }
        if (page.length <= limit) return { found, next: null }
      }
    },
    find: (caller: Caller, id: string) => conversations.find(ownerOf(caller), id),
    messages: (caller: Caller, id: string): Promise<ConversationMessage[]> =>
      conversations.messages(ownerOf(caller), id),
    folders: (caller: Caller): Promise<string[]> => conversations.folders(ownerOf(caller)),
    /** Moves all conversations of a folder to another one, or to none. Returns how many. Rejects as `create` does. */
    async moveFolder(caller: Caller, folder: string, to: string | null): Promise<number> {
      if (to !== null) requireStorage(caller)
      return conversations.moveFolder(ownerOf(caller), folder, to)
    },
    /** Rejects with Failure `role_not_allowed` where the organization stores no content. */
    async create(caller: Caller, { title, ...fields }: Fields): Promise<ConversationRecord> {
      requireStorage(caller)
      const named = { ...fields, title: title ?? titleOf(fields.messages) }
      return conversations.create({ ...ownerOf(caller), ...named, id: newId('conv'), createdAt: clock.now() })
    },
    /** Undefined: there is none. Rejects as `create` does, and with `version_conflict`. */
    async update(caller: Caller, id: string, change: Omit<ConversationChange, 'at'>) {
      requireStorage(caller)
      return conversations.update(ownerOf(caller), id, { ...change, at: clock.now() })
    },
    /** With which anybody reads one. */
    links: openConversationLinks({ store, key, clock }),
    remove: (caller: Caller, id: string): Promise<boolean> => conversations.remove(ownerOf(caller), id),
  }
}
export type Conversations = ReturnType<typeof openConversations>
