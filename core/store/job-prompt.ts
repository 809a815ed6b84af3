/** The text of a part of a message, or of a message that is text. */
const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .flatMap((part: unknown) => {
      if (typeof part === 'string') return [part]
      const text = typeof part === 'object' && part !== null && 'text' in part ? part.text : undefined
      return typeof text === 'string' ? [text] : []
    })
    .join(' ')
}

/** The last of these messages that a person wrote. */
function lastWritten(messages: unknown): string {
  if (!Array.isArray(messages)) return ''
  const written = (messages as unknown[]).findLast(
    (one): one is { content: unknown } =>
      typeof one === 'object' && one !== null && 'role' in one && one.role === 'user' && 'content' in one,
  )
  return textOf(written?.content)
}

/** The members of inputs that a person wrote, besides messages. The first that has text counts. */
const written = ['prompt', 'input', 'text', 'query', 'text_1'] as const

/** The same as `promptOf` of inputs that are JSON text. */
export const promptIn = (inputs: string): string | null => promptOf(JSON.parse(inputs))

/** Returns what a person wrote in the inputs of a job: the prompt, the last message of the user, or the text. Null without any. */
export function promptOf(inputs: unknown): string | null {
  if (typeof inputs !== 'object' || inputs === null) return null
  const value = inputs as Record<string, unknown>
  const found = [
    ...written.map(name => value[name]).map(textOf),
    lastWritten(value['messages']),
    lastWritten(value['input']),
  ]
  return found.find(text => text.trim() !== '') ?? null
}

/** How many characters of a prompt a list shows. */
const shownCharacters = 200

/** The beginning of a prompt in one line, without half of a character at its end. */
export function promptExcerpt(prompt: string): string {
  const line = prompt
    .slice(0, 4 * shownCharacters)
    .replaceAll(/\s+/g, ' ')
    .trim()
  return line.length > shownCharacters
    ? `${line
        .slice(0, shownCharacters - 1)
        .toWellFormed()
        .replace(/\uFFFD$/, '')}…`
    : line
}
