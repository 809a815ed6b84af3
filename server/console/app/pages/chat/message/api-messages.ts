import type { Message } from './message.ts'

/** Returns the messages as the API takes them. An answer that failed before its first character is left out. */
export function apiMessages(system: string, messages: readonly Message[]): object[] {
  const sent = messages.filter(({ role, text, toolCalls }) => role !== 'assistant' || text !== '' || toolCalls?.length)
  return [...(system.trim() === '' ? [] : [{ role: 'system', content: system }]), ...sent.map(apiMessage)]
}

function apiMessage({ role, text, images = [], toolCalls = [], toolCallId }: Message): object {
  if (role === 'tool') return { role, tool_call_id: toolCallId, content: text }
  if (role === 'assistant')
    return {
      role,
      content: text,
      tool_calls:
        toolCalls.length === 0
          ? undefined
          : toolCalls.map(({ id, ...called }) => ({ id, type: 'function', function: called })),
    }
  if (images.length === 0) return { role, content: text }
  return {
    role,
    content: [
      ...images.map(id => ({ type: 'image_url', image_url: { url: id } })),
      ...(text === '' ? [] : [{ type: 'text', text }]),
    ],
  }
}

/** Returns the conversation that the messages of an API request make, such as those of an earlier job. */
export function conversationOf(sent: unknown): { system: string; messages: Message[] } {
  const system: string[] = []
  const messages: Message[] = []
  for (const one of Array.isArray(sent) ? (sent as Record<string, unknown>[]) : []) {
    const parts = Array.isArray(one.content) ? (one.content as Record<string, never>[]) : []
    const text = typeof one.content === 'string' ? one.content : parts.map(part => part.text ?? '').join('')
    if (one.role === 'system' || one.role === 'developer') system.push(text)
    else if (one.role === 'user') {
      const images = parts.flatMap(part => {
        const { url } = (part.image_url ?? {}) as { url?: string }
        return url === undefined ? [] : [url]
      })
      messages.push({ role: 'user', text, images: images.length > 0 ? images : undefined })
    } else if (one.role === 'tool') messages.push({ role: 'tool', text, toolCallId: String(one.tool_call_id) })
    else if (one.role === 'assistant') {
      const calls = (one.tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[]
      const toolCalls = calls.map(({ id, function: called }) => ({ id, ...called }))
      messages.push({ role: 'assistant', text, toolCalls: toolCalls.length > 0 ? toolCalls : undefined })
    }
  }
  return { system: system.join('\n\n'), messages }
}
