import { z } from 'zod'
import { invalid } from '../../failure.ts'
import type { FormNotes } from '../chat-form.ts'
import { needed } from '../chat-terms.ts'
import { type ResponseItem, ResponsePart } from './response-schemas.ts'
import type { ToolFunction } from './response-tools.ts'

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

/** What the items of a conversation may refer to, and where it is noted which are left out. */
interface Surroundings {
  referenced: ReferencedItems
  functions: readonly ToolFunction[]
  notes: FormNotes
}

/**
 * Turns the items of a conversation into messages of a chat. Calls that the client ran are calls of functions; what only
 * OpenAI runs or reads is left out. Throws Failure that names the item in `field`.
 */
export function messagesOf(
  items: readonly ResponseItem[],
  field: string,
  { referenced, functions, notes }: Surroundings,
): Message[] {
  const messages: Message[] = []
  /** The ids of calls by the ids of their items, for outputs that name the item. */
  const callIds = new Map<string, string>()
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

  const call = (item: ResponseItem, at: string, name: string, text: string): void => {
    const called = answer()
    called.tool_calls ??= []
    const id = needed((item.call_id ?? item.id) || null, `${at}.call_id`)
    if (item.id) callIds.set(item.id, id)
    called.tool_calls.push({ id, type: 'function', function: { name, arguments: text } })
  }

  const output = (item: ResponseItem, at: string): void => {
    open = undefined
    const id = item.call_id ?? (item.id && (callIds.get(item.id) ?? item.id))
    messages.push({
      role: 'tool',
      tool_call_id: needed(id || null, `${at}.call_id`),
      content: outputOf(item.output, `${at}.output`),
    })
  }

  /** Name of a function in the chat completion. */
  const nameOf = (item: ResponseItem, at: string): string => {
    const name = needed(item.name || null, `${at}.name`)
    const namespace = item.namespace ?? undefined
    return functions.find(one => one.ownName === name && one.namespace === namespace)?.name ?? name
  }

  const add = (item: ResponseItem, at: string): void => {
    const type = item.type ?? 'message'
    switch (type) {
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
      case 'function_call':
        return call(item, at, nameOf(item, at), item.arguments ?? '{}')
      case 'custom_tool_call':
        return call(item, at, nameOf(item, at), JSON.stringify({ input: item.input ?? '' }))
      case 'local_shell_call':
      case 'shell_call':
      case 'apply_patch_call':
        return call(item, at, type.slice(0, -'_call'.length), JSON.stringify(item.action ?? item.operation ?? {}))
      case 'function_call_output':
      case 'custom_tool_call_output':
      case 'local_shell_call_output':
      case 'shell_call_output':
      case 'apply_patch_call_output':
        return output(item, at)
      case 'additional_tools':
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
        notes.ignored.push(at)
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

const reasoningOf = ({ content, summary }: ResponseItem): string =>
  (typeof content === 'string' ? [{ text: content }] : [...(content ?? []), ...(summary ?? [])])
    .map(part => part.text ?? '')
    .join('\n')

/** A list of texts becomes one text, because many chat templates know no parts. */
function contentOf(content: ResponseItem['content'], field: string): string | Part[] {
  if (typeof content === 'string') return content
  const parts = needed(content?.length ? content : null, field)
  if (parts.every(({ type }) => type.endsWith('text'))) return parts.map(({ text }) => text ?? '').join('\n')
  return parts.map((part, at) => partOf(part, `${field}[${at}]`))
}

/** What a tool returned: a text, parts, or what else the client has, as JSON text. */
function outputOf(output: unknown, field: string): string | Part[] {
  if (typeof output === 'string') return output
  const { data } = outputParts.safeParse(output)
  return data ? contentOf(data, field) : JSON.stringify(needed(output, field))
}
const outputParts = z.array(ResponsePart).min(1)

function partOf(part: ResponsePart, at: string): Part {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: part.text ?? '' }
    case 'refusal':
      return { type: 'refusal', refusal: part.refusal ?? '' }
    case 'input_image': {
      const url = needed((part.image_url ?? part.file_id) || null, `${at}.image_url`)
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
