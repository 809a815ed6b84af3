import { invalid } from '../../failure.ts'
import type { ResponseItem, ResponsePart } from './response-schemas.ts'

type Part = Record<string, unknown>
interface Message {
  role: string
  content?: string | Part[] | null
  reasoning_content?: string
  tool_calls?: object[]
  tool_call_id?: string
}

/** Items of earlier responses, by their id. */
export type ReferencedItems = Readonly<Record<string, ResponseItem>>

/** Turns the items of a conversation into messages of a chat. Throws Failure that names the item in `field`. */
export function messagesOf(items: readonly ResponseItem[], field: string, referenced: ReferencedItems): Message[] {
  const messages: Message[] = []
  let reasoning: string | undefined
  /** The message of the assistant that the next item continues. */
  let open: Message | undefined

  const answer = (): Message => {
    if (!open) {
      open = { role: 'assistant', content: null }
      if (reasoning) open.reasoning_content = reasoning
      reasoning = undefined
      messages.push(open)
    }
    return open
  }

  const add = (item: ResponseItem, at: string): void => {
    switch (item.type ?? 'message') {
      case 'message': {
        const role = roleOf(item, at)
        const content = contentOf(item.content, `${at}.content`)
        if (role === 'assistant') {
          // Text after tool calls begins another message.
          if (open?.content || open?.tool_calls) open = undefined
          answer().content = content
        } else {
          open = undefined
          messages.push({ role, content })
        }
        return
      }
      case 'function_call': {
        const called = answer()
        called.tool_calls ??= []
        called.tool_calls.push({
          id: needed(item.call_id, `${at}.call_id`),
          type: 'function',
          function: { name: needed(item.name, `${at}.name`), arguments: item.arguments ?? '{}' },
        })
        return
      }
      case 'function_call_output':
        open = undefined
        messages.push({
          role: 'tool',
          tool_call_id: needed(item.call_id, `${at}.call_id`),
          content: contentOf(item.output, `${at}.output`),
        })
        return
      case 'reasoning':
        open = undefined
        reasoning = reasoningOf(item)
        return
      case 'item_reference': {
        const id = item.id ?? ''
        const found = Object.hasOwn(referenced, id) ? referenced[id] : undefined
        if (found) return add(found, at)
        throw invalid(
          `${at}.id`,
          `'${at}' refers to the item '${item.id}', which is not kept here. Send the item itself, or create responses with 'store'.`,
          'not_found',
        )
      }
      default:
        throw invalid(
          `${at}.type`,
          `'${at}' has the type '${item.type}', which does not exist here. Send messages, function calls and their outputs, and reasoning.`,
          'unsupported_parameter',
        )
    }
  }
  items.forEach((item, at) => add(item, `${field}[${at}]`))
  return messages
}

const roles = ['user', 'assistant', 'system', 'developer']

function roleOf({ role }: ResponseItem, at: string): string {
  if (role && roles.includes(role)) return role
  throw invalid(`${at}.role`, `'${at}.role' must be one of ${roles.join(', ')}.`)
}

function needed(value: string | null | undefined, param: string): string {
  if (value) return value
  throw invalid(param, `'${param}' is missing.`, 'missing_required_parameter')
}

const reasoningOf = ({ content, summary }: ResponseItem): string =>
  (typeof content === 'string' ? [{ text: content }] : [...(content ?? []), ...(summary ?? [])])
    .map(part => part.text ?? '')
    .join('\n')

/** A list of texts becomes one text, because many chat templates know no parts. */
function contentOf(content: ResponseItem['content'], field: string): string | Part[] {
  if (typeof content === 'string') return content
  if (!content || content.length === 0) throw invalid(field, `'${field}' is missing.`, 'missing_required_parameter')
  if (content.every(({ type }) => type.endsWith('text'))) return content.map(({ text }) => text ?? '').join('\n')
  return content.map((part, at) => partOf(part, `${field}[${at}]`))
}

function partOf(part: ResponsePart, at: string): Part {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: part.text ?? '' }
    case 'refusal':
      return { type: 'refusal', refusal: part.refusal ?? '' }
    case 'input_image': {
      const url = needed(part.image_url ?? part.file_id, `${at}.image_url`)
      const detail = ['low', 'high'].includes(part.detail ?? '') ? { detail: part.detail } : {}
      return { type: 'image_url', image_url: { url, ...detail } }
    }
    case 'input_audio':
      return { type: 'input_audio', input_audio: part.input_audio }
    case 'input_file': {
      const { file_id, file_data, filename } = part
      if (!file_id && !file_data)
        throw invalid(
          `${at}.file_id`,
          `'${at}' needs 'file_id' or 'file_data': files are not fetched from addresses. Upload it with POST /std/v1/files.`,
          'unsupported_parameter',
        )
      const file = { ...(file_id ? { file_id } : { file_data }), ...(filename ? { filename } : {}) }
      return { type: 'file', file }
    }
    default:
      throw invalid(
        `${at}.type`,
        `'${at}' has the type '${part.type}', which does not exist here. Send input_text, input_image, input_file or input_audio.`,
        'unsupported_parameter',
      )
  }
}
