import { setImmediate as nextIteration } from 'node:timers/promises'
import type { Caller } from '../accounts/accounts.ts'
import { Failure } from '../failure.ts'
import { newId } from '../ids.ts'
import type {
  ConversationChange,
  ConversationMessage,
  ConversationOwner,
  ConversationRecord,
  NewConversation,
  Store,
} from '../store/store.ts'
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
  folder?: string | undefined
  /** Words that the title or a message must contain as they are, in any case. */
  search?: string | undefined
}

/** Whose conversations a caller reads: those of the user of the token, or of the token itself where it has none. */
export const ownerOf = ({
  organizationId,
  token,
}: Pick<Caller, 'organizationId'> & { token: Pick<Caller['token'], 'userId' | 'originId'> }): ConversationOwner => ({
  organizationId,
  owner: token.userId ?? token.originId,
})

/** Conversations that are kept for people, where their organization stores content. */
export function openConversations({
  store: { conversations },
  clock = Date,
}: {
  store: Pick<Store, 'conversations'>
  clock?: { now(): number }
}) {
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
    remove: (caller: Caller, id: string): Promise<boolean> => conversations.remove(ownerOf(caller), id),
  }
}
export type Conversations = ReturnType<typeof openConversations>

function requireStorage({ token: { callStorage, organizationName } }: Caller): void {
  if (callStorage === 'content') return
  throw new Failure(
    'role_not_allowed',
    `The organization '${organizationName}' stores no content of calls, so no conversation is kept for it. Who administers it can change that: PATCH /api/organizations/{organization} with "call_storage": "content".`,
  )
}
