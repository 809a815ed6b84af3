interface Message {
  role: string
  content?: unknown
}

const isInstruction = ({ role }: Message): boolean => role === 'system' || role === 'developer'

/**
 * Returns the conversation in the form that every chat template takes: one system message at most, at its start, and no two
 * messages of the user in a row. Agents send instructions in the midst of a conversation, such as Claude Code after each
 * message of the user and Codex before it, and many templates refuse those: such an instruction becomes a part of the
 * user's message beside it, between `<system>` tags. Whatever was said stays in its order, so that the beginning of a
 * conversation stays the same as it grows.
 */
export function inTurns<Turn extends Message>(messages: readonly Turn[]): Turn[] {
  const after = messages.findIndex(message => !isInstruction(message))
  const leading = after < 0 ? messages : messages.slice(0, after)
  const turns: Turn[] = []
  if (leading.length > 0)
    turns.push({ ...leading[0]!, role: 'system', content: leading.map(({ content }) => content).reduce(joined) })
  for (const message of messages.slice(leading.length)) {
    const turn = isInstruction(message) ? { ...message, role: 'user', content: marked(message.content) } : message
    const last = turns.at(-1)
    if (turn.role !== 'user' || last?.role !== 'user') turns.push(turn)
    else turns[turns.length - 1] = { ...last, content: joined(last.content, turn.content) }
  }
  return turns
}

const partsOf = (content: unknown): unknown[] =>
  Array.isArray(content) ? content : [{ type: 'text', text: typeof content === 'string' ? content : '' }]

const joined = (first: unknown, second: unknown): unknown =>
  typeof first === 'string' && typeof second === 'string'
    ? `${first}\n\n${second}`
    : [...partsOf(first), ...partsOf(second)]

const marked = (content: unknown): unknown =>
  typeof content === 'string'
    ? `<system>\n${content}\n</system>`
    : [...partsOf('<system>'), ...partsOf(content), ...partsOf('</system>')]
