import type { ChatResponse } from '../../schemas/chat.ts'
import type { ChatChunk, ChatForm, ChatStreamForm } from '../chat-form.ts'
import { typedEvent } from '../chat-terms.ts'
import { cohereBody } from './cohere-body.ts'
import { CohereChatRequest } from './cohere-chat-schemas.ts'

const finishReasons: Record<string, string> = {
  length: 'MAX_TOKENS',
  tool_calls: 'TOOL_CALL',
  content_filter: 'ERROR',
}
const finishReasonOf = (finish: string | null): string => finishReasons[finish ?? ''] ?? 'COMPLETE'

function usageOf(usage: ChatResponse['usage'] | null | undefined): object {
  const tokens = { input_tokens: usage?.prompt_tokens ?? 0, output_tokens: usage?.completion_tokens ?? 0 }
  return { billed_units: tokens, tokens, cached_tokens: usage?.prompt_tokens_details?.cached_tokens ?? 0 }
}

function answer(_: CohereChatRequest, completion: ChatResponse): object {
  const { message, finish_reason } = completion.choices[0]!
  const text = message.content || message.refusal
  const content = [
    ...(message.reasoning_content ? [{ type: 'thinking', thinking: message.reasoning_content }] : []),
    ...(text ? [{ type: 'text', text }] : []),
  ]
  return {
    id: completion.id,
    finish_reason: finishReasonOf(finish_reason),
    message: {
      role: 'assistant',
      ...(content.length > 0 ? { content } : {}),
      ...(message.tool_calls?.length ? { tool_calls: message.tool_calls } : {}),
      citations: [],
    },
    usage: usageOf(completion.usage),
  }
}

const done = 'data: [DONE]\n\n'

/** Begins the translation of a stream into typed events. */
function stream(): ChatStreamForm {
  let id: string | undefined
  let contents = -1
  let call = -1
  let open: 'thinking' | 'text' | 'call' | undefined
  let finish: string | null = null
  let usage: ChatChunk['usage']

  const close = (): string => {
    const was = open
    open = undefined
    if (was === undefined) return ''
    return was === 'call'
      ? typedEvent('tool-call-end', { index: call })
      : typedEvent('content-end', { index: contents })
  }
  const say = (kind: 'thinking' | 'text', said: string): string => {
    let text = ''
    if (open !== kind) {
      text = close()
      open = kind
      contents++
      text += typedEvent('content-start', {
        index: contents,
        delta: { message: { content: { type: kind, [kind]: '' } } },
      })
    }
    return text + typedEvent('content-delta', { index: contents, delta: { message: { content: { [kind]: said } } } })
  }
  const callTools = (calls: NonNullable<ChatChunk['choices'][number]['delta']['tool_calls']>): string => {
    let text = ''
    for (const { index, id: callId, function: called } of calls) {
      if (callId !== undefined && called?.name !== undefined) {
        text += close()
        open = 'call'
        call = index
        const begun = { id: callId, type: 'function', function: { name: called.name, arguments: '' } }
        text += typedEvent('tool-call-start', { index, delta: { message: { tool_calls: begun } } })
      }
      if (called?.arguments)
        text += typedEvent('tool-call-delta', {
          index,
          delta: { message: { tool_calls: { function: { arguments: called.arguments } } } },
        })
    }
    return text
  }

  return {
    contentType: 'text/event-stream; charset=utf-8',
    chunk(chunk) {
      let text = ''
      if (id === undefined) {
        id = chunk.id
        const message = { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] }
        text = typedEvent('message-start', { id, delta: { message } })
      }
      if (chunk.usage) usage = chunk.usage
      const [choice] = chunk.choices
      if (!choice) return text
      const { content, reasoning_content, refusal, tool_calls } = choice.delta
      if (reasoning_content) text += say('thinking', reasoning_content)
      if (content) text += say('text', content)
      if (refusal) text += say('text', refusal)
      if (tool_calls) text += callTools(tool_calls)
      finish = choice.finish_reason ?? finish
      return text
    },
    end: () =>
      close() +
      typedEvent('message-end', { id, delta: { finish_reason: finishReasonOf(finish), usage: usageOf(usage) } }) +
      done,
    failure: ({ message, code }, requestId) =>
      close() +
      typedEvent('message-end', {
        id,
        delta: { finish_reason: 'ERROR', error: message, code, request_id: requestId, usage: usageOf(usage) },
      }) +
      done,
  }
}

/** Cohere's form of a conversation (v2). */
export const cohereForm: ChatForm<CohereChatRequest> = {
  schema: CohereChatRequest,
  isStream: request => request.stream === true,
  chatBody: cohereBody,
  // The answer depends on the completion only.
  remembered: ({ model }) => ({ model, messages: [] }),
  answer,
  stream: () => stream(),
}
