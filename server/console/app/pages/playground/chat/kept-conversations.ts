import type { Message } from './message.ts'

/** The job or the file that is opened in the playground by its address; empty for neither. */
type Origin = string

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

/** Signing out removes names with this beginning. */
const shared = 'infer.person.playground.'
/** Each conversation has its id behind this. */
const beginning = (token: string): string => `${shared}${token}`
/** The conversation of this tab, which a reload finds again. */
const tabKey = (token: string): string => `${beginning(token)}.conversation`

/** Older ones are dropped. */
const maxConversations = 20
/** Characters of one. */
const maxLength = 1_000_000
/** Characters of all. Browsers keep 5 MB for a site; drafts of workflows need room too. */
const maxTotal = 3_000_000
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

const keysWith = (start: string): string[] => Object.keys(localStorage).filter(key => key.startsWith(start))

/** The conversations whose keys begin with `start`, such as those of a token, the newest first. */
function entriesWith(start: string): { key: string; entry: Entry }[] {
  return keysWith(start)
    .flatMap(key => {
      const entry = read(key)
      return entry ? [{ key, entry }] : []
    })
    .toSorted((a, b) => (b.entry.at ?? 0) - (a.entry.at ?? 0))
}

/** Writes a conversation; the oldest others make room for it. False if it has no room even alone. */
function store(key: string, text: string): boolean {
  const lengthOf = (one: string) => (one === key ? text.length : (localStorage.getItem(one) ?? '').length)
  do {
    const total = [...new Set([...keysWith(shared), key])].reduce((sum, one) => sum + lengthOf(one), 0)
    if (total > maxTotal) continue
    try {
      localStorage.setItem(key, text)
      return true
    } catch {
      // The browser has no room.
    }
  } while (removeOldest(key))
  return false
}

/** Removes the oldest conversation beside one. False if there is none. */
function removeOldest(but: string): boolean {
  const oldest = entriesWith(shared).findLast(({ key }) => key !== but)
  if (oldest) localStorage.removeItem(oldest.key)
  return oldest !== undefined
}

/** Writes which conversation this tab shows, and has what stands there then. */
function keepTab(token: string, key: string, origin: Origin): string | null {
  try {
    sessionStorage.setItem(tabKey(token), JSON.stringify({ key, origin }))
  } catch {
    // The browser has no room: a reload shows the conversation that the tab had before.
  }
  return sessionStorage.getItem(tabKey(token))
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
  const newest = tab ? undefined : entriesWith(beginning(token))[0]
  return opened(token, newest?.key ?? newKey(token), origin, newest?.entry)
}

/** Opens an earlier conversation in this tab. */
export function openEarlier(token: string, key: string): OpenedConversation {
  keepTab(token, key, '')
  return opened(token, key, '', read(key))
}

const newKey = (token: string): string => `${beginning(token)}.${randomId()}`

function opened(token: string, first: string, origin: Origin, begun: KeptConversation & Partial<Entry> = nothing) {
  let key = first
  let { revision } = begun
  let tab = sessionStorage.getItem(tabKey(token))
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
      // A conversation that is left is kept once more, when the tab shows another one already.
      if (sessionStorage.getItem(tabKey(token)) === tab) tab = keepTab(token, key, origin)
      if (system === '' && messages.length === 0 && compared.length === 0) return localStorage.removeItem(key)
      if (!read(key))
        for (const old of entriesWith(beginning(token)).slice(maxConversations - 1)) localStorage.removeItem(old.key)
      const written = randomId()
      for (let from = 0; from < Math.max(1, messages.length); from += half(messages.length - from)) {
        const entry = {
          system,
          messages: messages.slice(from),
          compared: compared.slice(from),
          revision: written,
          at: Date.now(),
        }
        const text = JSON.stringify(entry satisfies Entry)
        // A shorter part may fit.
        if (text.length > maxLength || !store(key, text)) continue
        revision = written
        return
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
  entriesWith(beginning(token))
    .filter(one => one.key !== key)
    .map(one => ({
      key: one.key,
      title: one.entry.messages.find(({ role }) => role === 'user')?.text.slice(0, 80) ?? '',
      at: (one.entry.at ?? 0) / 1_000,
    }))
