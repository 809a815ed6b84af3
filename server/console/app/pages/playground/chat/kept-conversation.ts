import type { Message } from './conversation.ts'

export interface Kept {
  system: string
  messages: readonly Message[]
}
/** The shell removes keys with this beginning at sign-out. */
const key = (token: string) => `infer.person.playground.${token}`
/** Characters. Browsers keep 5 MB for a site. */
const maxLength = 1_000_000
const nothing: Kept = { system: '', messages: [] }

/** Reads the conversation that this browser keeps for a token. */
export function readKept(token: string): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(key(token)) ?? 'null') as Kept | null
    return kept && Array.isArray(kept.messages) ? kept : nothing
  } catch {
    return nothing
  }
}

/** Keeps the conversation; of a very long one its end. */
export function keep(token: string, { system, messages }: Kept): void {
  for (
    let from = 0;
    from < Math.max(1, messages.length);
    from += Math.max(2, Math.ceil((messages.length - from) / 2))
  ) {
    const text = JSON.stringify({ system, messages: messages.slice(from) })
    if (text.length > maxLength) continue
    try {
      return localStorage.setItem(key(token), text)
    } catch {
      // The browser has no room: a shorter part may fit.
    }
  }
}
