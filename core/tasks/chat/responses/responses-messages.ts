import { Failure } from '../../../failure.ts'
import type { ResponsesRequest } from '../../../schemas/responses.ts'
import type { SentItem } from '../../../schemas/responses-items.ts'
import { type ChatPart, joined, partsOf, required } from './responses-content.ts'

type Message = Record<string, unknown>
interface AssistantMessage extends Message {
  role: 'assistant'
  content: string | ChatPart[] | null
  reasoning_content?: string
  tool_calls?: object[]
}

/** Returns the messages of a conversation. Throws Failure whose `param` names an item of `input`. */
export function messagesOf({ input, instructions }: Pick<ResponsesRequest, 'input' | 'instructions'>): Message[] {
  const messages: Message[] = instructions ? [{ role: 'system', content: instructions }] : []
  if (typeof input === 'string') return [...messages, { role: 'user', content: input }]
  /** The message of the assistant that further items of the same answer belong to. */
  let answer: AssistantMessage | undefined
  /** Files that tools returned. Chat templates read only text as a result, so they follow as a message of the user. */
  let returned: ChatPart[] = []
  const flush = () => {
    if (returned.length > 0) messages.push({ role: 'user', content: returned })
    returned = []
  }
  const answering = (): AssistantMessage => {
    flush()
    if (!answer) messages.push((answer = { role: 'assistant', content: null }))
    return answer
  }
  input.forEach((item, at) => {
    const param = `input[${at}]`
    switch (item.type ?? 'message') {
      case 'message': {
        const role = required(item.role, `${param}.role`)
        const content = joined(partsOf(required(item.content, `${param}.content`), `${param}.content`))
        if (role === 'assistant') {
          // A second text is a message of its own, unless it follows reasoning only.
          if (answer && (answer.content !== null || answer.tool_calls)) answer = undefined
          answering().content = content
          return
        }
        answer = undefined
        flush()
        messages.push({ role, content })
        return
      }
      case 'reasoning': {
        // Reasoning begins a new answer.
        answer = undefined
        const text = reasoningOf(item)
        if (text) answering().reasoning_content = text
        return
      }
      case 'function_call': {
        const message = answering()
        message.tool_calls ??= []
        message.tool_calls.push({
          id: required(item.call_id, `${param}.call_id`),
          type: 'function',
          function: {
            name: required(item.name, `${param}.name`),
            arguments: required(item.arguments, `${param}.arguments`),
          },
        })
        return
      }
      case 'function_call_output': {
        answer = undefined
        const id = required(item.call_id, `${param}.call_id`)
        const parts = partsOf(required(item.output, `${param}.output`), `${param}.output`)
        const files = parts.filter(part => part.type !== 'text')
        const text = parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
        if (files.length > 0)
          returned.push({ type: 'text', text: `Files that the tool call ${id} returned:` }, ...files)
        messages.push({
          role: 'tool',
          tool_call_id: id,
          content: text || (files.length > 0 ? 'The result follows as files.' : ''),
        })
        return
      }
      default:
        throw unsupported(item, param)
    }
  })
  flush()
  // An answer of which only empty reasoning was sent says nothing.
  return messages.map(message =>
    message.role === 'assistant' && message.content === null && !message.tool_calls
      ? { ...message, content: '' }
      : message,
  )
}

function reasoningOf({ content, encrypted_content, summary }: SentItem): string {
  if (typeof content === 'string') return content
  if (content?.length) return content.map(part => part.text ?? '').join('')
  if (encrypted_content) return Buffer.from(encrypted_content, 'base64').toString('utf8')
  return summary?.map(part => part.text ?? '').join('\n') ?? ''
}

const unsupported = ({ type }: SentItem, param: string): Failure =>
  new Failure(
    'unsupported_parameter',
    type === 'item_reference'
      ? `'${param}' refers to a stored item, but responses are not stored here. Send the item itself, and 'store: false' so that clients do so.`
      : `'${param}.type' is '${type}', which is not supported. Send 'message', 'function_call', 'function_call_output' or 'reasoning'.`,
    { param: type === 'item_reference' ? param : `${param}.type` },
  )
