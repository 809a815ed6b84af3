import { Failure, invalid } from '../../failure.ts'
import { presentMembers } from '../../members.ts'
import { effortOfBudget, needed } from '../chat-terms.ts'
import type { AnthropicBlock, AnthropicRequest } from './anthropic-schemas.ts'

type Message = Record<string, unknown>
/** What a conversation is made of, whether it is answered or its tokens are counted. */
type AnthropicConversation = Pick<
  AnthropicRequest,
  'model' | 'messages' | 'system' | 'tools' | 'tool_choice' | 'thinking' | 'output_config'
> &
  Partial<AnthropicRequest>

/** Returns the body of a chat completion. Throws Failure whose `param` names a field of the request. */
export function anthropicBody(request: AnthropicConversation): Record<string, unknown> {
  const { tools, tool_choice: choice, output_config, stop_sequences } = request
  const format = output_config?.format
  const calling = tools?.length
    ? {
        tools: tools.map(toolOf),
        tool_choice: choice && choiceOf(choice, tools),
        parallel_tool_calls: choice?.disable_parallel_tool_use ? false : undefined,
      }
    : {}
  return presentMembers({
    model: request.model,
    messages: messagesOf(request),
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

function messagesOf({ system, messages }: AnthropicConversation): Message[] {
  const first = system?.length ? [{ role: 'system', content: joinParts(partsOf(system, 'system')) }] : []
  return [
    ...first,
    ...messages.flatMap(({ role, content }, at) => {
      const param = `messages[${at}].content`
      if (role === 'assistant') return [answered(content, param)]
      if (role === 'system') return [{ role, content: joinParts(partsOf(content, param)) }]
      return requested(content, param)
    }),
  ]
}

/** Translates a message of the user: first the results of tools, one message for each, then the rest. */
function requested(content: string | AnthropicBlock[], param: string): Message[] {
  if (typeof content === 'string') return [{ role: 'user', content }]
  const results: Message[] = []
  const rest: ChatPart[] = []
  content.forEach((block, at) => {
    const place = `${param}[${at}]`
    if (block.type !== 'tool_result') {
      rest.push(...partsOfBlock(block, place))
      return
    }
    const id = needed(block.tool_use_id, `${place}.tool_use_id`)
    const parts = partsOf(block.content ?? '', `${place}.content`)
    const texts = parts.filter(({ type }) => type === 'text').map(({ text }) => text)
    const others = parts.filter(({ type }) => type !== 'text')
    // Chat templates read only text as the result of a tool, so its images follow in a message of the user.
    if (others.length > 0) rest.push({ type: 'text', text: `Files that the tool call ${id} returned:` }, ...others)
    const text = texts.join('\n') || (others.length > 0 ? 'The result follows as files.' : '')
    results.push({ role: 'tool', tool_call_id: id, content: block.is_error ? `Error: ${text}` : text })
  })
  return rest.length > 0 ? [...results, { role: 'user', content: joinParts(rest) }] : results
}

function answered(content: string | AnthropicBlock[], param: string): Message {
  if (typeof content === 'string') return { role: 'assistant', content }
  const parts: ChatPart[] = []
  const thoughts: string[] = []
  const calls: object[] = []
  content.forEach((block, at) => {
    const place = `${param}[${at}]`
    if (block.type === 'thinking') thoughts.push(needed(block.thinking, `${place}.thinking`))
    else if (block.type === 'tool_use')
      calls.push({
        id: needed(block.id, `${place}.id`),
        type: 'function',
        function: { name: needed(block.name, `${place}.name`), arguments: JSON.stringify(block.input ?? {}) },
      })
    // Redacted reasoning is encrypted by the server that wrote it: nobody else can read it.
    else if (block.type !== 'redacted_thinking') parts.push(...partsOfBlock(block, place))
  })
  const text = joinParts(parts, '')
  return {
    role: 'assistant',
    content: text.length > 0 ? text : calls.length > 0 ? null : '',
    ...(thoughts.length > 0 ? { reasoning_content: thoughts.join('\n') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
}

function toolOf(tool: NonNullable<AnthropicRequest['tools']>[number], at: number) {
  if (tool.type && tool.type !== 'custom')
    throw invalid(
      `tools[${at}].type`,
      `'tools[${at}]' is the tool '${tool.type}' of Anthropic, which is not available here. Define a tool with 'name' and 'input_schema' and run it yourself.`,
      'unsupported_parameter',
    )
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(tool.name))
    throw invalid(`tools[${at}].name`, `'tools[${at}].name' must be 1 to 64 letters, digits, "_", "." and "-".`)
  const parameters = needed(tool.input_schema, `tools[${at}].input_schema`)
  return {
    type: 'function',
    function: {
      name: tool.name,
      ...(tool.description ? { description: tool.description } : {}),
      parameters,
      ...(tool.strict ? { strict: true } : {}),
    },
  }
}

function choiceOf({ type, name }: NonNullable<AnthropicRequest['tool_choice']>, tools: { name: string }[]): unknown {
  if (type !== 'tool') return type === 'any' ? 'required' : type
  const wanted = needed(name, 'tool_choice.name')
  if (!tools.some(tool => tool.name === wanted))
    throw invalid('tool_choice.name', `'tool_choice' names '${wanted}', which is not among 'tools'.`)
  return { type: 'function', function: { name: wanted } }
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

/** Returns the failure for a type of block that has no place there. */
const unknownBlock = (type: string, param: string): Failure =>
  refused(
    param,
    `a block of the type '${type}', which is not supported here. Server tools are not run: define tools of your own`,
  )

/** Returns parts of one text if no part is something else: some chat templates only read texts. */
const joinParts = (parts: ChatPart[], separator = '\n\n'): string | ChatPart[] =>
  parts.every(part => part.type === 'text') ? parts.map(part => part.text).join(separator) : parts

/** Translates the blocks of texts, images and documents. Throws Failure for other blocks. */
function partsOf(content: Content, param: string): ChatPart[] {
  if (typeof content === 'string') return [textPart(content)]
  return content.flatMap((block, at) => partsOfBlock(block, `${param}[${at}]`))
}

/** Translates one block of text, image or document. */
function partsOfBlock(block: AnthropicBlock, param: string): ChatPart[] {
  switch (block.type) {
    case 'text':
      return [textPart(needed(block.text, `${param}.text`))]
    case 'image':
      return [{ type: 'image_url', image_url: { url: imageUrl(sourceOf(block, param), `${param}.source`) } }]
    case 'document':
      return documentParts(block, param)
    case 'search_result':
      return [
        textPart(headed([block.title, typeof block.source === 'string' ? block.source : undefined], '')),
        ...partsOf(needed(block.content, `${param}.content`), `${param}.content`),
      ]
    default:
      throw unknownBlock(block.type, param)
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

function documentParts(block: AnthropicBlock, param: string): ChatPart[] {
  const source = sourceOf(block, param)
  const at = `${param}.source`
  const head = headed([block.title, block.context], 'Document')
  switch (source.type) {
    case 'text':
      return [textPart(`${head}\n${needed(source.data, `${at}.data`)}`)]
    case 'content':
      return [textPart(head), ...partsOf(needed(source.content, `${at}.content`), `${at}.content`)]
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
