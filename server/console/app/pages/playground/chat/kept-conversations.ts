import type { Origin } from '../kept.ts'
import type { Message } from './conversation.ts'

/** A conversation as the browser keeps it; `compared` are the messages of the second model. */
export interface KeptConversation {
  system: string
  messages: readonly Message[]
  compared: readonly Message[]
}

interface Entry extends KeptConversation {
  /** Another one after each write: a tab sees by it that another tab has gone on with the conversation. */
  revision: string
  /** When it was written, in milliseconds. */
  at: number
}

/** Signing out removes names with this beginning. Each conversation has its id behind it. */
const beginning = (token: string): string => `infer.person.playground.${token}`
/** The conversation of this tab, which a reload finds again. */
const tabKey = (token: string): string => `${beginning(token)}.conversation`

/** Older ones are dropped. */
const maxConversations = 20
/** Characters of one. Browsers keep 5 MB for a site. */
const maxLength = 1_000_000
const nothing: KeptConversation = { system: '', messages: [], compared: [] }

/** Browsers offer random UUIDs only to pages of https and of this machine. */
const randomId = (): string => Math.random().toString(36).slice(2)

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    return null
  }
}

function read(key: string): Entry | undefined {
  const entry = parsed(localStorage.getItem(key)) as Entry | null
  return entry && Array.isArray(entry.messages) ? { ...entry, compared: entry.compared ?? [] } : undefined
}

/** The conversations of a token with their keys, the newest first. */
function entriesOf(token: string): { key: string; entry: Entry }[] {
  const keys = Object.keys(localStorage).filter(key => key.startsWith(beginning(token)))
  return keys
    .flatMap(key => {
      const entry = read(key)
      return entry ? [{ key, entry }] : []
    })
    .toSorted((a, b) => (b.entry.at ?? 0) - (a.entry.at ?? 0))
}

/** The conversation that a tab shows, and how it is kept. */
export interface OpenedConversation {
  /** Another one for each that is opened. */
  id: string
  /** Where it is kept. */
  readonly key: string
  begun: KeptConversation
  keep: (conversation: KeptConversation) => void
}

/**
 * Opens the conversation of this tab; in a new tab the newest one. An address that names a job begins with `asked`, unless
 * this tab has begun with it before.
 */
export function openConversation(token: string, origin: Origin, asked?: KeptConversation): OpenedConversation {
  const tab = parsed(sessionStorage.getItem(tabKey(token))) as { key: string; origin: Origin } | null
  const own = tab ? read(tab.key) : undefined
  if (asked && !(own && tab?.origin === origin)) return opened(token, newKey(token), origin, asked)
  if (tab && own) return opened(token, tab.key, tab.origin, own)
  const newest = tab ? undefined : entriesOf(token)[0]
  return opened(token, newest?.key ?? newKey(token), origin, newest?.entry)
}

/** Opens an earlier conversation in this tab. */
export function openEarlier(token: string, key: string): OpenedConversation {
  const conversation = opened(token, key, '', read(key))
  sessionStorage.setItem(tabKey(token), JSON.stringify({ key, origin: '' }))
  return conversation
}

const newKey = (token: string): string => `${beginning(token)}.${randomId()}`

function opened(token: string, first: string, origin: Origin, begun: KeptConversation & Partial<Entry> = nothing) {
  let key = first
  let { revision } = begun
  return {
    id: randomId(),
    get key() {
      return key
    },
    begun,
    /** Keeps the conversation; of a very long one its end. One that another tab has gone on with is left to that tab. */
    keep({ system, messages, compared }: KeptConversation): void {
      const stored = read(key)
      if (stored && stored.revision !== revision) key = newKey(token)
      sessionStorage.setItem(tabKey(token), JSON.stringify({ key, origin }))
      if (system === '' && messages.length === 0 && compared.length === 0) return localStorage.removeItem(key)
      if (!read(key)) for (const old of entriesOf(token).slice(maxConversations - 1)) localStorage.removeItem(old.key)
      revision = randomId()
      for (let from = 0; from < Math.max(1, messages.length); from += half(messages.length - from)) {
        const entry = {
          system,
          messages: messages.slice(from),
          compared: compared.slice(from),
          revision,
          at: Date.now(),
        }
        const text = JSON.stringify(entry satisfies Entry)
        if (text.length > maxLength) continue
        try {
          return localStorage.setItem(key, text)
        } catch {
          // The browser has no room: a shorter part may fit.
        }
      }
    },
  }
}

const half = (length: number): number => Math.max(2, Math.ceil(length / 2))

/** An earlier conversation in a list. */
export interface Earlier {
  key: string
  /** How its first message begins. */
  title: string
  /** When it was written last, unix seconds. */
  at: number
}

/** The conversations of a token that this browser keeps beside one, the newest first. */
export const earlierThan = (token: string, key: string): Earlier[] =>
  entriesOf(token)
    .filter(one => one.key !== key)
    .map(one => ({
      key: one.key,
      title: one.entry.messages.find(({ role }) => role === 'user')?.text.slice(0, 80) ?? '',
      at: (one.entry.at ?? 0) / 1_000,
    }))
