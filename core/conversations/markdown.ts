/** A message as the store has it: `details` are its other fields as JSON text. */
interface Stored {
  id: string
  parent: string | null
  text: string
  details: string
}

interface Details {
  role: 'user' | 'assistant' | 'tool'
  model?: string
  reasoning?: string
  tool_calls?: readonly { name: string; arguments: string }[]
}

/** Returns the messages from the first one to `last`, each the parent of the next; none for null. */
export function branchOf<Message extends Pick<Stored, 'id' | 'parent'>>(
  messages: readonly Message[],
  last: string | null,
): Message[] {
  const byId = new Map(messages.map(message => [message.id, message]))
  const branch: Message[] = []
  for (let next = last === null ? undefined : byId.get(last); next; ) {
    branch.push(next)
    next = next.parent === null ? undefined : byId.get(next.parent)
  }
  return branch.toReversed()
}

/** Returns the branch that is shown as Markdown: a heading for each message, with the model of an answer. */
export function markdownOf(
  { title, system, currentMessage }: { title: string; system: string; currentMessage: string | null },
  messages: readonly Stored[],
): string {
  const parts = [`# ${title.replaceAll(/\s+/g, ' ')}`]
  if (system !== '') parts.push('## System', system)
  for (const { text, details } of branchOf(messages, currentMessage)) {
    const { role, model, reasoning, tool_calls: calls = [] } = JSON.parse(details) as Details
    parts.push(`## ${role === 'user' ? 'User' : role === 'tool' ? 'Tool' : (model ?? 'Assistant')}`)
    if (reasoning) parts.push(reasoning.replaceAll(/^/gm, '> '))
    if (text !== '') parts.push(text)
    for (const call of calls) parts.push(fenced(`${call.name}(${call.arguments})`))
  }
  return `${parts.join('\n\n')}\n`
}

/** A block of code, whose fence is longer than any in it. */
function fenced(code: string): string {
  const longest = Math.max(2, ...[...code.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${code}\n${fence}`
}
