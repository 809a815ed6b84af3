/** What the text library cannot be given: controls, halves of pairs, what Unicode says is no character. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u{FFFE}\u{FFFF}\u{FDD0}-\u{FDEF}]/gu
const towers = /(\p{M}{3})\p{M}+/gu

/**
 * A text as it can be set in type: one paragraph of at most `most` characters, without what cannot be shown. Long
 * ones are cut before anything else looks at them.
 */
export function printable(text: string, most: number): string {
  const start = text.slice(0, most * 8).toWellFormed()
  const words = start.replace(unprintable, ' ').replace(towers, '$1').replace(/\s+/g, ' ').trim()
  const characters = Array.from(words)
  return characters.length <= most && start.length === text.length
    ? words
    : `${characters.slice(0, most).join('').trimEnd()}…`
}

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** The text for a library that would take its marks for markup. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, mark => escapes[mark]!)
