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
  const runs: Turn[][] = leading.length > 0 ? [leading.map(message => ({ ...message, role: 'system' }))] : []
  for (const message of messages.slice(leading.length)) {
    const turn = isInstruction(message) ? { ...message, role: 'user', content: marked(message.content) } : message
    const last = runs.at(-1)
    if (turn.role === 'user' && last?.[0]!.role === 'user') last.push(turn)
    else runs.push([turn])
  }
  return runs.map(run => (run.length === 1 ? run[0]! : { ...run[0]!, content: joined(run.map(it => it.content)) }))
}

const partsOf = (content: unknown): unknown[] =>
  Array.isArray(content) ? content : [{ type: 'text', text: typeof content === 'string' ? content : '' }]

/** Joins all at once: one after the other takes seconds for a long run of parts. */
const joined = (contents: readonly unknown[]): unknown =>
  contents.every(content => typeof content === 'string') ? contents.join('\n\n') : contents.flatMap(partsOf)

const marked = (content: unknown): unknown =>
  typeof content === 'string'
    ? `<system>\n${content}\n</system>`
    : [...partsOf('<system>'), ...partsOf(content), ...partsOf('</system>')]
