import type { ChatResponse } from '../../schemas/chat.ts'
import type { ChatForm } from '../chat-form.ts'
import { argumentsOf } from '../chat-terms.ts'
import { anthropicBody } from './anthropic-body.ts'
import { AnthropicRequest } from './anthropic-schemas.ts'
import { anthropicStream, anthropicUsage, messageId, signature, stopReasonOf } from './anthropic-stream.ts'

function answer(_: AnthropicRequest, completion: ChatResponse): object {
  const { message, finish_reason } = completion.choices[0]!
  const content: object[] = []
  if (message.reasoning_content) content.push({ type: 'thinking', thinking: message.reasoning_content, signature })
  const text = message.content || message.refusal
  if (text) content.push({ type: 'text', text, citations: null })
  for (const call of message.tool_calls ?? [])
    content.push({
      type: 'tool_use',
      id: call.id,
      name: call.function.name,
      input: argumentsOf(call.function.arguments),
    })
  return {
    id: messageId(completion.id),
    type: 'message',
    role: 'assistant',
    model: completion.model,
    content,
    stop_reason: message.refusal ? 'refusal' : stopReasonOf(finish_reason),
    stop_sequence: null,
    usage: anthropicUsage(completion.usage),
  }
}

/** Anthropic's form of a conversation. */
export const anthropicForm: ChatForm<AnthropicRequest> = {
  schema: AnthropicRequest,
  isStream: ({ stream }) => stream === true,
  chatBody: anthropicBody,
  // The answer depends on the completion only.
  remembered: ({ model, max_tokens }) => ({ model, max_tokens, messages: [] }),
  answer,
  stream: () => anthropicStream(),
}
