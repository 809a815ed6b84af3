import type { ConversationMessage, ConversationRecord } from '../store/store.ts'
import { branchOf } from './branch.ts'

interface Details {
  role: 'user' | 'assistant' | 'tool'
  model?: string
  reasoning?: string
  tool_calls?: readonly { name: string; arguments: string }[]
}

/** Returns the branch that is shown as Markdown: a heading for each message, with the model of an answer. */
export function markdownOf(
  { title, system, currentMessage }: Pick<ConversationRecord, 'title' | 'system' | 'currentMessage'>,
  messages: readonly ConversationMessage[],
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
