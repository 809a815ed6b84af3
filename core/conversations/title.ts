/** The most characters of a title that is made of a message. */
const maxTitle = 60

/** Returns the first words of the first message that has any; empty if there is none. */
export function titleOf(messages: readonly { text: string }[]): string {
  for (const { text } of messages) {
    const words = text.slice(0, 1_000).replaceAll(/\s+/g, ' ').trim()
    if (words === '') continue
    if (words.length <= maxTitle) return words
    const space = words.lastIndexOf(' ', maxTitle)
    return `${words.slice(0, space > maxTitle / 2 ? space : maxTitle).replace(/[\uD800-\uDBFF]$/, '')}…`
  }
  return ''
}
