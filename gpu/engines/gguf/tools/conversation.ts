import { createHash } from 'node:crypto'
import { boundedJsonOf } from '../../../../core/json.ts'
import type { ChatRequest } from '../../../../core/schemas/chat.ts'
import type { RequestTool } from './call-form.ts'

/** A message as templates expect it: its content is one text, its role one of four. */
export type Message = Omit<ChatRequest['messages'][number], 'content' | 'role'> & {
  role: string
  content: string | null
  name?: string
  tool_calls?: Call[]
  tool_call_id?: string
  function_call?: { name: string; arguments: string } | null | undefined
}
type Call = { id: string; type: 'function'; function: { name: string; arguments: unknown } }

/** Converts the deprecated function fields of a message to tool fields. The function name becomes the call id. */
export function withoutFunctions({ function_call, ...message }: Message): Message {
  if (message.role === 'tool') return { ...message, tool_call_id: message.tool_call_id ?? message.name ?? '' }
  if (!function_call || message.tool_calls) return message
  return { ...message, tool_calls: [{ id: function_call.name, type: 'function', function: function_call }] }
}

/** Most templates write the arguments of earlier calls themselves and require them as objects. */
export const withObjects = (messages: readonly Message[]): Message[] =>
  withCalls(messages, call => {
    const text = call.function.arguments as string
    const value = boundedJsonOf(text)
    return { ...call, function: { ...call.function, arguments: value === undefined ? text : value } }
  })

/** Mistral's templates refuse ids that are not nine letters and digits. */
export function withShortIds(messages: readonly Message[]): Message[] {
  const short = (id: string) =>
    /^[A-Za-z0-9]{9}$/.test(id) ? id : createHash('sha256').update(id).digest('hex').slice(0, 9)
  return withCalls(messages, call => ({ ...call, id: short(call.id) })).map(message =>
    message.role === 'tool' ? { ...message, tool_call_id: short(message.tool_call_id ?? '') } : message,
  )
}

/** Some templates support one call per message: each call is put into a separate message, before its result. */
export function oneToolCallEach(messages: readonly Message[]): Message[] {
  const left = [...messages]
  const rewritten: Message[] = []
  for (let message = left.shift(); message; message = left.shift()) {
    if (!message.tool_calls || message.tool_calls.length < 2) {
      rewritten.push(message)
      continue
    }
    for (const [at, call] of message.tool_calls.entries()) {
      rewritten.push({ ...message, content: at === 0 ? message.content : null, tool_calls: [call] })
      const result = left.findIndex(({ role, tool_call_id }) => role === 'tool' && tool_call_id === call.id)
      if (result >= 0) rewritten.push(...left.splice(result, 1))
    }
  }
  return rewritten
}

/**
 * Converts calls and results to ordinary messages, for templates that support neither: calls to the form of Hermes,
 * results to user messages.
 */
export function inProse(messages: readonly Message[]): Message[] {
  const rewritten: Message[] = []
  let results: Message | undefined
  for (const { tool_calls, ...message } of messages) {
    if (message.role === 'tool') {
      const result = `<tool_response>\n${message.content ?? ''}\n</tool_response>`
      if (results) results.content += `\n${result}`
      else rewritten.push((results = { role: 'user', content: result }))
      continue
    }
    if (results && message.role === 'user') results.content += `\n${message.content ?? ''}`
    else if (tool_calls)
      rewritten.push({ ...message, content: [message.content, ...tool_calls.map(written)].filter(Boolean).join('\n') })
    else rewritten.push(message)
    results = undefined
  }
  return rewritten
}

const written = ({ function: { name, arguments: given } }: Call): string =>
  `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${String(given)}}\n</tool_call>`

/** Adds a text to the system message, or before the first user message if the model has no system role. */
export function introduced(messages: readonly Message[], text: string, hasSystem: boolean): Message[] {
  const first = messages.findIndex(({ role }) => role === (hasSystem ? 'system' : 'user'))
  if (first < 0 || (hasSystem && first > 0))
    return [{ role: hasSystem ? 'system' : 'user', content: text }, ...messages]
  return messages.map((message, at) =>
    at === first
      ? { ...message, content: hasSystem ? `${message.content}\n\n${text}` : `${text}\n\n${message.content}` }
      : message,
  )
}

/** Returns a text that explains how to call functions, for models whose template does not. */
export function toolIntroduction(tools: readonly RequestTool[], forced: boolean, parallel: boolean): string {
  return [
    'You can call functions. Each line between <tools> and </tools> describes one, its parameters as JSON Schema:',
    '<tools>',
    ...tools.map(tool => JSON.stringify(tool.function)),
    '</tools>',
    'To call a function, write its name and its arguments as JSON in exactly this form:',
    '<tool_call>',
    '{"name": "the name of the function", "arguments": {"the name of a parameter": "its value"}}',
    '</tool_call>',
    parallel ? 'Several calls are written one behind the other.' : 'Make one call at a time.',
    'The results come back between <tool_response> and </tool_response>.',
    forced ? 'Answer the next message with a call.' : 'When no function is needed, answer in plain words.',
  ].join('\n')
}

const withCalls = (messages: readonly Message[], change: (call: Call) => Call): Message[] =>
  messages.map(message => (message.tool_calls ? { ...message, tool_calls: message.tool_calls.map(change) } : message))
