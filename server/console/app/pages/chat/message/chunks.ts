import type { Message } from './message.ts'

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
