import { titleOf } from '../../../../../../core/conversations/title.ts'
import { randomId } from '../../../components/random-id.ts'
import { chatText } from '../../../text/chat.ts'
import { type TreeMessage, withMessages } from '../conversation/tree.ts'
import type { Conversation, ConversationStore, ListedConversation } from './stored.ts'

interface Entry extends Conversation {
  /** Unix milliseconds of the last change. */
  at: number
}

/** Signing out removes names with this beginning. */
const shared = 'infer.person.chat.conversation.'
/** The conversations of a token, each with its id behind this. */
const beginning = (token: string): string => `${shared}${token}.`

/** Characters of all conversations. Browsers keep 5 MB for a site; drafts of workflows need room too. */
const maxTotal = 3_000_000
/** Characters of one. */
const maxLength = 1_000_000

const keysWith = (start: string): string[] => Object.keys(localStorage).filter(key => key.startsWith(start))

function read(key: string): Entry | undefined {
  try {
    const entry = JSON.parse(localStorage.getItem(key) ?? 'null') as Entry | null
    // Those that were kept before there were folders are in none.
    return entry && Array.isArray(entry.messages) ? { ...entry, folder: entry.folder ?? null } : undefined
  } catch {
    return undefined
  }
}

/** The conversations whose keys begin with `start`, the newest first. */
const entriesWith = (start: string): { key: string; entry: Entry }[] =>
  keysWith(start)
    .flatMap(key => {
      const entry = read(key)
      return entry ? [{ key, entry }] : []
    })
    .toSorted((a, b) => b.entry.at - a.entry.at)

/** Writes a conversation; the oldest others make room for it. Throws if it has no room even alone. */
function write(key: string, entry: Entry): void {
  const text = JSON.stringify(entry)
  if (text.length > maxLength) throw new Error(chatText.tooLong)
  const lengthOf = (one: string) => (one === key ? text.length : (localStorage.getItem(one) ?? '').length)
  do {
    const total = [...new Set([...keysWith(shared), key])].reduce((sum, one) => sum + lengthOf(one), 0)
    if (total > maxTotal) continue
    try {
      return localStorage.setItem(key, text)
    } catch {
      // The browser has no room.
    }
  } while (removeOldest(key))
  throw new Error(chatText.noRoom)
}

/** A preset is a conversation without messages. */
const isPreset = ({ entry }: { entry: Entry }): boolean => entry.messages.length === 0

/** Removes the oldest conversation beside one; presets stay. False if there is none. */
function removeOldest(but: string): boolean {
  const oldest = entriesWith(shared).findLast(one => one.key !== but && !isPreset(one))
  if (oldest) localStorage.removeItem(oldest.key)
  return oldest !== undefined
}

/** Keeps the conversations of a token in this browser, until the person signs out. Its methods are done when they return. */
export function browserStore(token: string): ConversationStore & {
  /** Those whose title or text contains the words, in any case; the newest first. */
  list: (search: string) => ListedConversation[]
  presets: () => { id: string; name: string }[]
} {
  const keyOf = (id: string) => `${beginning(token)}${id}`
  const idOf = (key: string) => key.slice(beginning(token).length)
  const found = (id: string): Entry => {
    const entry = read(keyOf(id))
    if (!entry) throw new Error(chatText.gone)
    return entry
  }
  return {
    list(search) {
      const words = search.trim().toLowerCase()
      const has = (text: string) => text.toLowerCase().includes(words)
      return entriesWith(beginning(token))
        .filter(one => !isPreset(one))
        .filter(({ entry }) => has(entry.title) || entry.messages.some(({ text }) => has(text)))
        .map(({ key, entry }) => ({
          id: idOf(key),
          place: 'browser' as const,
          title: entry.title,
          folder: entry.folder,
          at: entry.at / 1_000,
        }))
    },
    presets: () =>
      entriesWith(beginning(token))
        .filter(isPreset)
        .map(({ key, entry }) => ({ id: idOf(key), name: entry.title })),
    read: async id => found(id),
    create: async conversation => {
      const id = randomId()
      const title = conversation.title || titleOf(conversation.messages)
      write(keyOf(id), { ...conversation, title, at: Date.now() })
      return { id, title }
    },
    // Another tab may have gone on with it: what both have written is kept, as branches.
    update: async (id, { messages = [], ...change }) => {
      const before = found(id)
      write(keyOf(id), { ...before, ...change, messages: withMessages(before.messages, messages), at: Date.now() })
    },
    remove: async id => localStorage.removeItem(keyOf(id)),
  }
}

/** A message as the playground kept it; `images` are ids of files. */
type OldMessage = Omit<TreeMessage, 'id' | 'parent' | 'files'> & { images?: readonly string[] }

/** A conversation as the playground kept it before the chat had its page; `compared` are the messages of a second model. */
interface Old {
  system: string
  messages: readonly OldMessage[]
  compared?: readonly OldMessage[]
  at?: number
}

/** An old message as one of a conversation. */
const taken = ({ images, ...message }: OldMessage): Omit<TreeMessage, 'id' | 'parent'> =>
  images ? { ...message, files: images.map(id => ({ id, kind: 'image', name: '' })) } : message

/** Takes over the conversations of a token that the playground kept in this browser. */
export function takeOver(token: string): void {
  for (const key of keysWith(`infer.person.playground.${token}.`)) {
    const old = read(key) as Old | undefined
    if (!old) continue
    const first = chained(old.messages.map(taken))
    const messages = [...first, ...chained((old.compared ?? []).map(taken))]
    const entry = { folder: null, system: old.system, parameters: {}, messages, current: first.at(-1)?.id ?? null }
    localStorage.removeItem(key)
    if (messages.length === 0) continue
    try {
      write(`${beginning(token)}${randomId()}`, { ...entry, title: titleOf(messages), at: old.at ?? Date.now() })
    } catch {
      // One without room is the only thing that is not taken over.
    }
  }
}

/** Messages that follow each other as those of a tree. */
export function chained(messages: readonly Omit<TreeMessage, 'id' | 'parent' | 'at'>[]): TreeMessage[] {
  const ids = messages.map(() => randomId())
  const at = Math.floor(Date.now() / 1_000)
  return messages.map((message, index) => ({ ...message, id: ids[index]!, parent: ids[index - 1] ?? null, at }))
}
