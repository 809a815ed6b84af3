import type { Message } from './message.ts'

/** Returns the messages as the API takes them. An answer that failed before its first character is left out. */
export function apiMessages(system: string, messages: readonly Message[]): object[] {
  const sent = messages.filter(({ role, text, toolCalls }) => role !== 'assistant' || text !== '' || toolCalls?.length)
  return [...(system.trim() === '' ? [] : [{ role: 'system', content: system }]), ...sent.map(apiMessage)]
}

/** The messages that the last answer is about, or the next one will be. */
export const questionOf = (messages: readonly Message[]): readonly Message[] =>
  messages.slice(0, messages.findLastIndex(({ role }) => role !== 'assistant') + 1)

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

/** A part of a streamed answer, of a chat or of a completion. */
interface Chunk {
  choices?: {
    text?: string
    delta?: {
      content?: string | null
      reasoning_content?: string | null
      reasoning?: string | null
      tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[]
    }
  }[]
  usage?: { prompt_tokens: number; completion_tokens: number } | null
  error?: { message: string }
}

/** Returns the answer with another part of the stream. */
export function withChunk(answer: Message, { choices, usage, error }: Chunk, sinceMs: number): Message {
  const { text, delta = {} } = choices?.[0] ?? {}
  const content = text ?? delta.content ?? ''
  const reasoning = delta.reasoning_content ?? delta.reasoning ?? ''
  const calls = [...(answer.toolCalls ?? [])]
  for (const { index, id, function: part } of delta.tool_calls ?? []) {
    const before = calls[index] ?? { id: id ?? `call_${index}`, name: '', arguments: '' }
    calls[index] = {
      id: id ?? before.id,
      name: before.name + (part?.name ?? ''),
      arguments: before.arguments + (part?.arguments ?? ''),
    }
  }
  const began = content !== '' || reasoning !== '' || calls.length > 0
  const firstMs = answer.figures?.firstMs ?? (began ? sinceMs : undefined)
  return {
    ...answer,
    text: answer.text + content,
    reasoning: (answer.reasoning ?? '') + reasoning,
    toolCalls: calls.length > 0 ? calls : undefined,
    failure: error?.message ?? answer.failure,
    figures: {
      ...answer.figures,
      totalMs: sinceMs,
      firstMs,
      ...(usage ? { inputTokens: usage.prompt_tokens, outputTokens: usage.completion_tokens } : {}),
    },
  }
}

export const emptyAnswer: Message = { role: 'assistant', text: '' }

/** Some models write their reasoning into the answer, between tags. Returns both apart. */
export function apart({ text, reasoning = '' }: Pick<Message, 'text' | 'reasoning'>): {
  text: string
  reasoning: string
} {
  const found = /^\s*<think>([\s\S]*?)(?:<\/think>\s*|$)/.exec(text)
  if (!found) return { text, reasoning }
  return { text: text.slice(found[0].length), reasoning: reasoning + found[1]!.trim() }
}
