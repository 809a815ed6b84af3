import { Failure, invalid } from '../../failure.ts'
import { presentMembers } from '../../members.ts'
import { toolName } from '../../schemas/chat.ts'
import type { FormNotes } from '../chat-form.ts'
import { effortOfBudget, needed } from '../chat-terms.ts'
import { inTurns } from '../turns.ts'
import type { AnthropicBlock, AnthropicRequest } from './anthropic-schemas.ts'

interface Message {
  role: string
  [member: string]: unknown
}
/** What a conversation is made of, whether it is answered or its tokens are counted. */
type AnthropicConversation = Pick<
  AnthropicRequest,
  'model' | 'messages' | 'system' | 'tools' | 'tool_choice' | 'thinking' | 'output_config'
> &
  Partial<AnthropicRequest>

/** Returns the body of a chat completion. Throws Failure whose `param` names a field of the request. */
export function anthropicBody(
  request: AnthropicConversation,
  _context: unknown,
  notes: FormNotes,
): Record<string, unknown> {
  const { tool_choice: choice, output_config, stop_sequences } = request
  const format = output_config?.format
  for (const member of ['mcp_servers', 'container'] as const) if (request[member]) notes.ignored.push(member)
  const tools = ownTools(request, notes)
  const calling =
    tools.length > 0
      ? {
          tools: tools.map(toolOf),
          tool_choice: choice && choiceOf(choice, request.tools ?? [], tools, notes),
          parallel_tool_calls: choice?.disable_parallel_tool_use ? false : undefined,
        }
      : {}
  return presentMembers({
    model: request.model,
    messages: messagesOf(request, notes),
    max_completion_tokens: request.max_tokens,
    stop: stop_sequences?.length ? stop_sequences : undefined,
    temperature: request.temperature,
    top_p: request.top_p,
    top_k: request.top_k,
    user: request.metadata?.user_id,
    reasoning_effort: effortOf(request),
    response_format: format && {
      type: 'json_schema',
      json_schema: { name: 'answer', schema: format.schema, strict: true },
    },
    ...calling,
  })
}

function messagesOf({ system, messages }: AnthropicConversation, notes: FormNotes): Message[] {
  const first = system?.length ? [{ role: 'system', content: joinParts(partsOf(system, 'system', notes)) }] : []
  return inTurns([
    ...first,
    ...messages.flatMap(({ role, content }, at): Message[] => {
      const param = `messages[${at}].content`
      if (role === 'assistant') return [answered(content, param, notes)]
      if (role === 'system') return [{ role, content: joinParts(partsOf(content, param, notes)) }]
      return requested(content, param, notes)
    }),
  ])
}

/** Translates a message of the user: first the results of tools, one message for each, then the rest. */
function requested(content: string | AnthropicBlock[], param: string, notes: FormNotes): Message[] {
  if (typeof content === 'string') return [{ role: 'user', content }]
  const results: Message[] = []
  const rest: ChatPart[] = []
  content.forEach((block, at) => {
    const place = `${param}[${at}]`
    if (block.type !== 'tool_result') {
      rest.push(...partsOfBlock(block, place, notes))
      return
    }
    const id = needed(block.tool_use_id, `${place}.tool_use_id`)
    const parts = partsOf(block.content ?? '', `${place}.content`, notes)
    const texts = parts.filter(({ type }) => type === 'text').map(({ text }) => text)
    const others = parts.filter(({ type }) => type !== 'text')
    // Chat templates read only text as the result of a tool, so its images follow in a message of the user.
    if (others.length > 0) rest.push({ type: 'text', text: `Files that the tool call ${id} returned:` }, ...others)
    const text = texts.join('\n') || (others.length > 0 ? 'The result follows as files.' : '')
    results.push({ role: 'tool', tool_call_id: id, content: block.is_error ? `Error: ${text}` : text })
  })
  return rest.length > 0 ? [...results, { role: 'user', content: joinParts(rest) }] : results
}

function answered(content: string | AnthropicBlock[], param: string, notes: FormNotes): Message {
  if (typeof content === 'string') return { role: 'assistant', content }
  const parts: ChatPart[] = []
  const thoughts: string[] = []
  const calls: object[] = []
  content.forEach((block, at) => {
    const place = `${param}[${at}]`
    if (block.type === 'thinking') thoughts.push(block.thinking ?? '')
    else if (block.type === 'tool_use')
      calls.push({
        id: needed(block.id, `${place}.id`),
        type: 'function',
        function: { name: needed(block.name, `${place}.name`), arguments: JSON.stringify(block.input ?? {}) },
      })
    // Redacted reasoning is encrypted by the server that wrote it: nobody else can read it.
    else if (block.type !== 'redacted_thinking') parts.push(...partsOfBlock(block, place, notes))
  })
  const text = joinParts(parts, '')
  return {
    role: 'assistant',
    content: text.length > 0 ? text : calls.length > 0 ? null : '',
    ...(thoughts.length > 0 ? { reasoning_content: thoughts.join('\n') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
}

type Tool = NonNullable<AnthropicRequest['tools']>[number]
interface PlacedTool {
  tool: Tool
  at: number
}

/** Returns the tools that the caller runs. Those that Anthropic runs or defines are left out. */
function ownTools({ tools }: AnthropicConversation, notes: FormNotes): PlacedTool[] {
  const own: PlacedTool[] = []
  for (const [at, tool] of (tools ?? []).entries())
    if (tool.type && tool.type !== 'custom') notes.ignored.push(`tools[${at}]`)
    else {
      own.push({ tool, at })
      notes.schemas.push(`tools[${at}].input_schema`)
    }
  return own
}

function toolOf({ tool, at }: PlacedTool) {
  if (!toolName.test(tool.name))
    throw invalid(`tools[${at}].name`, `'tools[${at}].name' must have 1 to 128 characters without control characters.`)
  return {
    type: 'function',
    function: {
      name: tool.name,
      ...(tool.description ? { description: tool.description } : {}),
      parameters: needed(tool.input_schema, `tools[${at}].input_schema`),
      ...(tool.strict ? { strict: true } : {}),
    },
  }
}

function choiceOf(
  { type, name }: NonNullable<AnthropicRequest['tool_choice']>,
  all: readonly Tool[],
  own: readonly PlacedTool[],
  notes: FormNotes,
): unknown {
  if (type !== 'tool') return type === 'any' ? 'required' : type
  const wanted = needed(name, 'tool_choice.name')
  if (own.some(({ tool }) => tool.name === wanted)) return { type: 'function', function: { name: wanted } }
  if (!all.some(tool => tool.name === wanted))
    throw invalid('tool_choice.name', `'tool_choice' names '${wanted}', which is not among 'tools'.`)
  notes.ignored.push('tool_choice')
  return 'auto'
}

/** Returns how much to reason; undefined leaves it to the model. */
function effortOf({ thinking, output_config }: AnthropicConversation): string | undefined {
  if (thinking?.type === 'disabled') return 'none'
  const effort = output_config?.effort
  if (effort) return ['xhigh', 'max'].includes(effort) ? 'high' : effort
  return thinking?.type === 'enabled' ? effortOfBudget(thinking.budget_tokens) : undefined
}

/** A part of the content of a chat message. */
type ChatPart = { type: string; text?: string; [member: string]: unknown }

type Content = string | AnthropicBlock[]

const textPart = (text: string): ChatPart => ({ type: 'text', text })

const refused = (param: string, what: string): Failure =>
  invalid(param, `'${param}' is ${what}.`, 'unsupported_parameter')

/** Returns parts of one text if no part is something else: some chat templates only read texts. */
const joinParts = (parts: ChatPart[], separator = '\n\n'): string | ChatPart[] =>
  parts.every(part => part.type === 'text') ? parts.map(part => part.text).join(separator) : parts

/** Translates the blocks of texts, images and documents. */
function partsOf(content: Content, param: string, notes: FormNotes): ChatPart[] {
  if (typeof content === 'string') return [textPart(content)]
  return content.flatMap((block, at) => partsOfBlock(block, `${param}[${at}]`, notes))
}

/** Translates one block of text, image or document. Blocks of tools that Anthropic runs are left out. */
function partsOfBlock(block: AnthropicBlock, param: string, notes: FormNotes): ChatPart[] {
  switch (block.type) {
    case 'text':
      return [textPart(needed(block.text, `${param}.text`))]
    case 'image':
      return [{ type: 'image_url', image_url: { url: imageUrl(sourceOf(block, param), `${param}.source`) } }]
    case 'document':
      return documentParts(block, param, notes)
    case 'search_result':
      return [
        textPart(headed([block.title, typeof block.source === 'string' ? block.source : undefined], '')),
        ...partsOf(needed(block.content, `${param}.content`), `${param}.content`, notes),
      ]
    case 'tool_reference':
      return [textPart(`The tool ${block.tool_name ?? ''} can be used.`)]
    default:
      notes.ignored.push(param)
      return []
  }
}

type Source = Exclude<NonNullable<AnthropicBlock['source']>, string>

function sourceOf({ source }: AnthropicBlock, param: string): Source {
  if (typeof source === 'object') return source
  throw invalid(`${param}.source`, `'${param}.source' must be an object.`, 'missing_required_parameter')
}

function imageUrl(source: Source, param: string): string {
  switch (source.type) {
    case 'base64':
      return `data:${needed(source.media_type, `${param}.media_type`)};base64,${needed(source.data, `${param}.data`)}`
    case 'url':
      return needed(source.url, `${param}.url`)
    case 'file':
      return needed(source.file_id, `${param}.file_id`)
    default:
      throw refused(param, `of the type '${source.type}'. Send an image as 'base64', 'url' or 'file'`)
  }
}

function documentParts(block: AnthropicBlock, param: string, notes: FormNotes): ChatPart[] {
  const source = sourceOf(block, param)
  const at = `${param}.source`
  const head = headed([block.title, block.context], 'Document')
  switch (source.type) {
    case 'text':
      return [textPart(`${head}\n${needed(source.data, `${at}.data`)}`)]
    case 'content':
      return [textPart(head), ...partsOf(needed(source.content, `${at}.content`), `${at}.content`, notes)]
    case 'base64': {
      const data = `data:${source.media_type ?? 'application/pdf'};base64,${needed(source.data, `${at}.data`)}`
      return [{ type: 'file', file: { file_data: data, ...(block.title ? { filename: block.title } : {}) } }]
    }
    case 'file':
      return [{ type: 'file', file: { file_id: needed(source.file_id, `${at}.file_id`) } }]
    default:
      throw refused(at, `of the type '${source.type}'. Send a document as 'text', 'content', 'base64' or 'file'`)
  }
}

const headed = (lines: (string | null | undefined)[], otherwise: string): string =>
  lines.filter(line => line).join('\n') || otherwise
