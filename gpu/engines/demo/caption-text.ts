/** Characters that the text library rejects: control characters, separators and Unicode noncharacters. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u{FFFE}\u{FFFF}\u{FDD0}-\u{FDEF}]/gu
const longMarkSequences = /(\p{M}{3})\p{M}+/gu

/**
 * Makes a text renderable: one paragraph of at most `limit` characters without unprintable ones. Long texts are
 * truncated first, to bound the cost.
 */
export function captionText(text: string, limit: number): string {
  const start = text.slice(0, limit * 8).toWellFormed()
  const words = start.replace(unprintable, ' ').replace(longMarkSequences, '$1').replace(/\s+/g, ' ').trim()
  const characters = Array.from(words)
  return characters.length <= limit && start.length === text.length
    ? words
    : `${characters.slice(0, limit).join('').trimEnd()}…`
}

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Escapes markup characters. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, mark => escapes[mark]!)
