import { ulid } from '../../ids.ts'
import type { ChatResponse } from '../../schemas/chat.ts'

const stopReasons: Record<string, string> = {
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'refusal',
}
/** Returns the stop reason for a finish reason of a chat completion. */
export const stopReasonOf = (finish: string | null): string => stopReasons[finish ?? ''] ?? 'end_turn'

/** Returns the id of a message for the id of a completion. */
export const messageId = (id: string): string => `msg_${id.replace(/^chatcmpl-/, '') || ulid()}`

/** Clients send reasoning back only with a signature. Nothing here checks it. */
export const signature = 'unsigned'

type Usage = ChatResponse['usage'] | null | undefined
/** Returns token counts: Anthropic's count of input tokens leaves out the cached ones. */
export function anthropicUsage(usage: Usage): Record<string, unknown> {
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0
  return {
    input_tokens: Math.max(0, (usage?.prompt_tokens ?? 0) - cached),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: usage?.completion_tokens ?? 0,
    service_tier: 'standard',
  }
}
