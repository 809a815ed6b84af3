import { invalid } from '../../failure.ts'
import type { ChatForm } from '../chat-form.ts'
import { ollamaAnswer, ollamaStream, type ShowPart } from './ollama-answer.ts'
import { ollamaContent, onlyLoads, sharedBody } from './ollama-body.ts'
import { OllamaChatRequest, OllamaGenerateRequest } from './ollama-schemas.ts'

type Messages = NonNullable<OllamaChatRequest['messages']>

const message: ShowPart = ({ content, thinking, toolCalls }) => ({
  message: {
    role: 'assistant',
    content,
    ...(thinking === undefined ? {} : { thinking }),
    ...(toolCalls === undefined ? {} : { tool_calls: toolCalls }),
  },
})

/** Calls of the last assistant message whose results have not come yet. */
type Waiting = { id: string; name: string }[]

/**
 * Takes the call that a `tool` message answers: by its id, else by the name of the tool, else the first. Throws Failure
 * `invalid_value` if no call waits for a result.
 */
function takeCall(waiting: Waiting, { tool_call_id, tool_name }: Messages[number], param: string): string {
  const byId = waiting.findIndex(({ id }) => id === tool_call_id)
  const byName = waiting.findIndex(({ name }) => name === tool_name)
  const [call] = waiting.splice(byId >= 0 ? byId : Math.max(0, byName), 1)
  if (call) return call.id
  throw invalid(
    param,
    `'${param}' is the result of a tool call, and no assistant message before it has one in 'tool_calls' without a result.`,
  )
}

/** Returns the messages of a chat completion. Tool calls without an id get one, which their results name. */
function chatMessages(messages: Messages): object[] {
  let waiting: Waiting = []
  return messages.map((one, at) => {
    const path = `messages[${at}]`
    const content = ollamaContent(one.content, one.images, `${path}.`)
    if (one.role === 'tool') return { role: 'tool', content, tool_call_id: takeCall(waiting, one, path) }
    if (one.role !== 'assistant') return { role: one.role, content }
    const calls = (one.tool_calls ?? []).map((call, n) => ({
      id: call.id ?? `call_${at}_${n}`,
      type: 'function',
      function: { name: call.function.name, arguments: JSON.stringify(call.function.arguments) },
    }))
    waiting = calls.map(({ id, function: { name } }) => ({ id, name }))
    return {
      role: 'assistant',
      content,
      ...(one.thinking ? { reasoning_content: one.thinking } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    }
  })
}

/** What Ollama's conversations have in common. `now`: epoch milliseconds, from which durations are counted. */
function conversationForm<Request extends OllamaChatRequest | OllamaGenerateRequest>(
  show: ShowPart,
  now: () => number,
  { schema, chatBody }: Pick<ChatForm<Request>, 'schema' | 'chatBody'>,
): ChatForm<Request, void, Pick<Request, 'model' | 'think'>> {
  const factsOf = ({ model, think }: Pick<Request, 'model' | 'think'>) => ({ model, thinks: think !== false, show })
  return {
    schema,
    isStream: ({ stream }) => stream !== false,
    chatBody,
    remembered: ({ model, think }) => ({ model, think }),
    answer: (request, completion, facts) => ollamaAnswer(factsOf(request), completion, facts, now),
    stream: (request, facts) => ollamaStream(factsOf(request), facts, now),
  }
}

/** Ollama's `/api/chat`. `now`: epoch milliseconds, from which durations are counted. */
export const ollamaChatForm = (now: () => number = Date.now) =>
  conversationForm<OllamaChatRequest>(message, now, {
    schema: OllamaChatRequest,
    chatBody(request) {
      const { messages, tools } = request
      if (!messages?.length) throw onlyLoads(request, 'messages')
      return {
        ...sharedBody(request),
        messages: chatMessages(messages),
        ...(tools?.length ? { tools: tools.map(tool => ({ type: 'function', function: tool.function })) } : {}),
      }
    },
  })

const response: ShowPart = ({ content, thinking }) => ({
  response: content,
  ...(thinking === undefined ? {} : { thinking }),
})

/** What to use in place of a field that a chat cannot have. */
const instead = {
  suffix: 'Text in the middle is not supported. Leave it out.',
  template: 'Every model has its own template. Leave it out.',
  raw: 'Send the prompt to POST /std/v1/completions, which uses no template.',
  context: 'Send the conversation to POST /ollama/api/chat.',
} as const

/** Throws Failure `unsupported_parameter` for a field that changes the answer and is not supported. */
function refuseUnsupported(request: OllamaGenerateRequest): void {
  for (const [param, hint] of Object.entries(instead)) {
    const value = request[param as keyof typeof instead]
    if (value == null || value === false || value === '' || (Array.isArray(value) && value.length === 0)) continue
    throw invalid(param, `'${param}' is not supported here. ${hint}`, 'unsupported_parameter')
  }
}

/** Ollama's `/api/generate`, answered as a chat with one message. `now`: epoch milliseconds. */
export const ollamaGenerateForm = (now: () => number = Date.now) =>
  conversationForm<OllamaGenerateRequest>(response, now, {
    schema: OllamaGenerateRequest,
    chatBody(request) {
      refuseUnsupported(request)
      const { system, prompt, images } = request
      if (!prompt && !images?.length) throw onlyLoads(request, 'prompt')
      return {
        ...sharedBody(request),
        messages: [
          ...(system ? [{ role: 'system', content: system }] : []),
          { role: 'user', content: ollamaContent(prompt, images, '') },
        ],
      }
    },
  })
