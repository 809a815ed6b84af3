import { invalid } from '../../failure.ts'
import { presentMembers } from '../../members.ts'
import type { ChatResponse } from '../../schemas/chat.ts'
import type { ChatChunk, ChatForm, ChatStreamForm } from '../chat-form.ts'
import { effortOfBudget, needed, typedEvent } from '../chat-terms.ts'
import { CohereChatRequest, type CohereMessage, type CoherePart } from './cohere-chat-schemas.ts'

type Message = Record<string, unknown>

/** Returns the body of a chat completion. Throws Failure whose `param` names a field of the request. */
function cohereBody(request: CohereChatRequest): Record<string, unknown> {
  const { thinking, tools, stop_sequences } = request
  const strict = request.strict_tools ? { strict: true } : {}
  const calling = tools?.length
    ? {
        tools: tools.map(tool => ({ type: 'function', function: { ...tool.function, ...strict } })),
        tool_choice: request.tool_choice?.toLowerCase(),
      }
    : {}
  return presentMembers({
    model: request.model,
    messages: messagesOf(request),
    max_completion_tokens: request.max_tokens,
    stop: stop_sequences?.length ? stop_sequences : undefined,
    temperature: request.temperature,
    seed: request.seed,
    frequency_penalty: request.frequency_penalty,
    presence_penalty: request.presence_penalty,
    top_k: request.k,
    top_p: request.p,
    priority: request.priority,
    reasoning_effort: thinking?.type === 'disabled' ? 'none' : effortOfBudget(thinking?.token_budget),
    response_format: formatOf(request),
    ...calling,
  })
}

function formatOf({ response_format: format }: CohereChatRequest): object | undefined {
  if (format?.type !== 'json_object') return undefined
  return format.json_schema
    ? { type: 'json_schema', json_schema: { name: 'answer', schema: format.json_schema, strict: true } }
    : { type: 'json_object' }
}

function messagesOf({ messages, documents }: CohereChatRequest): Message[] {
  const translated = messages.map((message, at) => messageOf(message, `messages[${at}]`))
  if (!documents?.length) return translated
  const context = `Answer with the help of these documents.\n\n${documents.map(documentText).join('\n\n')}`
  const [first, ...rest] = translated
  // Many chat templates read only one system message.
  return first!.role === 'system' && typeof first!.content === 'string'
    ? [{ ...first, content: `${first!.content}\n\n${context}` }, ...rest]
    : [{ role: 'system', content: context }, ...translated]
}

const fieldsText = (data: string | Record<string, unknown>): string =>
  typeof data === 'string'
    ? data
    : Object.entries(data)
        .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
        .join('\n')

const documentText = (document: NonNullable<CohereChatRequest['documents']>[number], at: number): string =>
  typeof document === 'string'
    ? `Document ${at}\n${document}`
    : `Document ${document.id ?? at}\n${fieldsText(document.data)}`

function messageOf(message: CohereMessage, param: string): Message {
  const { role, content, tool_calls } = message
  if (role === 'tool') {
    const tool_call_id = needed(message.tool_call_id, `${param}.tool_call_id`)
    return { role, tool_call_id, content: contentOf(content, `${param}.content`) ?? '' }
  }
  if (role !== 'assistant') return { role, content: needed(contentOf(content, `${param}.content`), `${param}.content`) }
  const parts = Array.isArray(content) ? content : []
  const thoughts = parts.flatMap(({ type, thinking }) => (type === 'thinking' && thinking ? [thinking] : []))
  const said = contentOf(
    Array.isArray(content) ? parts.filter(({ type }) => type !== 'thinking') : content,
    `${param}.content`,
  )
  const calls = tool_calls?.map(call => ({ id: call.id, type: 'function', function: call.function }))
  return {
    role,
    content: said || message.tool_plan || (calls?.length ? null : ''),
    ...(thoughts.length > 0 ? { reasoning_content: thoughts.join('\n') } : {}),
    ...(calls?.length ? { tool_calls: calls } : {}),
  }
}

/** Returns one text if all parts are texts: some chat templates only read texts. */
function contentOf(content: CohereMessage['content'], param: string): string | object[] | undefined {
  if (content === undefined || content === null || typeof content === 'string') return content ?? undefined
  const parts = content.map((part, at) => partOf(part, `${param}[${at}]`))
  const texts = parts.flatMap(part => ('text' in part ? [part.text] : []))
  return texts.length === parts.length ? texts.join('\n') : parts
}

function partOf(part: CoherePart, param: string): { type: string; text: string } | { type: string; image_url: object } {
  if (part.type === 'text') return { type: 'text', text: needed(part.text, `${param}.text`) }
  if (part.type === 'image_url') return { type: 'image_url', image_url: needed(part.image_url, `${param}.image_url`) }
  if (part.type === 'document') {
    const { id, data } = needed(part.document, `${param}.document`)
    return { type: 'text', text: `${id === undefined ? '' : `Document ${id}\n`}${fieldsText(data)}` }
  }
  throw invalid(param, `'${param}' is reasoning, which only messages of the assistant have.`)
}

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
      content: content.length > 0 ? content : undefined,
      tool_calls: message.tool_calls?.length ? message.tool_calls : undefined,
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
