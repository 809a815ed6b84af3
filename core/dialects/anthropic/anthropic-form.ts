import type { Failure } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import type { ChatResponse } from '../../schemas/chat.ts'
import type { ChatChunk, ChatForm, ChatStreamForm } from '../chat-form.ts'
import { argumentsOf, typedEvent } from '../chat-terms.ts'
import { promptTokens } from '../prompt-tokens.ts'
import { anthropicBody } from './anthropic-body.ts'
import { AnthropicRequest } from './anthropic-schemas.ts'

/** The status that Anthropic's clients know as overload; they repeat such a request. */
const overloaded = 529

const errorTypes: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  410: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  503: 'overloaded_error',
}

/** Returns the HTTP status of a failure: 503 is Anthropic's 529. */
export const anthropicStatus = ({ status }: Failure): number => (status === 503 ? overloaded : status)

/** Returns the body of an error in Anthropic's form, with the code and the parameter besides. */
export function anthropicError(failure: Failure, requestId: string): object {
  const { status, code, message, param = null, facts } = failure
  const type =
    code === 'quota_exceeded'
      ? 'billing_error'
      : (errorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'))
  const said = code === 'context_length_exceeded' ? `${tooLong(failure)} ${message}` : message
  return { type: 'error', error: { type, message: said, code, param, ...facts }, request_id: requestId }
}

/** The words of Anthropic, by which programs recognize that a conversation must be shortened. */
const tooLong = ({ facts }: Failure): string =>
  facts?.prompt_tokens === undefined
    ? 'prompt is too long.'
    : `prompt is too long: ${facts.prompt_tokens} tokens > ${facts.context_length} maximum.`

const stopReasons: Record<string, string> = {
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'refusal',
}
/** Returns the stop reason for a finish reason of a chat completion. */
const stopReasonOf = (finish: string | null): string => stopReasons[finish ?? ''] ?? 'end_turn'

/** Returns the id of a message for the id of a completion. */
const messageId = (id: string): string => `msg_${id.replace(/^chatcmpl-/, '') || ulid()}`

/** Clients send reasoning back only with a signature. Nothing here checks it. */
const signature = 'unsigned'

type Usage = ChatResponse['usage'] | null | undefined
/** Returns token counts: Anthropic's count of input tokens leaves out the cached ones. */
function anthropicUsage(usage: Usage): Record<string, unknown> {
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0
  return {
    input_tokens: Math.max(0, (usage?.prompt_tokens ?? 0) - cached),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: usage?.completion_tokens ?? 0,
    service_tier: 'standard',
  }
}

/** The block that is open: its kind, or the index of its tool call. */
type Open = 'thinking' | 'text' | number

/** Begins the translation of a stream into typed events. */
function anthropicStream({ inputTokens }: RememberedMessage): ChatStreamForm {
  let begun = false
  let index = -1
  let open: Open | undefined
  let finish: string | null = null
  let refused = false
  let usage: ChatChunk['usage']

  const close = (): string => {
    if (open === undefined) return ''
    const signed =
      open === 'thinking'
        ? typedEvent('content_block_delta', { index, delta: { type: 'signature_delta', signature } })
        : ''
    open = undefined
    return signed + typedEvent('content_block_stop', { index })
  }
  const start = (what: Open, block: object): string => {
    if (open === what) return ''
    const closed = close()
    open = what
    index++
    return closed + typedEvent('content_block_start', { index, content_block: block })
  }
  const delta = (value: object): string => typedEvent('content_block_delta', { index, delta: value })

  function begin({ id, model }: ChatChunk): string {
    begun = true
    const message = {
      id: messageId(id),
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      // An estimate, because the engine counts at the end: `message_delta` has the counts.
      usage: { ...anthropicUsage(undefined), input_tokens: inputTokens },
    }
    return typedEvent('message_start', { message }) + typedEvent('ping', {})
  }

  function toolCalls(calls: NonNullable<ChatChunk['choices'][number]['delta']['tool_calls']>): string {
    let text = ''
    for (const { index: at, id, function: called } of calls) {
      if (called?.name !== undefined && id !== undefined)
        text += start(at, { type: 'tool_use', id, name: called.name, input: {} })
      if (called?.arguments) text += delta({ type: 'input_json_delta', partial_json: called.arguments })
    }
    return text
  }

  return {
    contentType: 'text/event-stream; charset=utf-8',
    chunk(chunk) {
      let text = begun ? '' : begin(chunk)
      if (chunk.usage) usage = chunk.usage
      const [choice] = chunk.choices
      if (!choice) return text
      const { content, reasoning_content, refusal, tool_calls } = choice.delta
      if (reasoning_content)
        text +=
          start('thinking', { type: 'thinking', thinking: '', signature: '' }) +
          delta({ type: 'thinking_delta', thinking: reasoning_content })
      for (const said of [content, refusal])
        if (said) text += start('text', { type: 'text', text: '' }) + delta({ type: 'text_delta', text: said })
      if (refusal) refused = true
      if (tool_calls) text += toolCalls(tool_calls)
      finish = choice.finish_reason ?? finish
      return text
    },
    end: () =>
      close() +
      typedEvent('message_delta', {
        delta: { stop_reason: refused ? 'refusal' : stopReasonOf(finish), stop_sequence: null },
        usage: anthropicUsage(usage),
      }) +
      typedEvent('message_stop', {}),
    failure: (failure: Failure, requestId: string) => typedEvent('error', anthropicError(failure, requestId)),
  }
}

/** What a stream says of its request. */
interface RememberedMessage {
  /** Estimated tokens of the prompt. */
  inputTokens: number
}

function answer(_: RememberedMessage, completion: ChatResponse): object {
  const { message, finish_reason } = completion.choices[0]!
  const content: object[] = []
  if (message.reasoning_content) content.push({ type: 'thinking', thinking: message.reasoning_content, signature })
  const text = message.content || message.refusal
  if (text) content.push({ type: 'text', text })
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
export const anthropicForm: ChatForm<AnthropicRequest, unknown, RememberedMessage> = {
  schema: AnthropicRequest,
  isStream: ({ stream }) => stream === true,
  chatBody: anthropicBody,
  remembered: request => ({ inputTokens: request.stream === true ? promptTokens(request) : 0 }),
  answer,
  stream: anthropicStream,
}
