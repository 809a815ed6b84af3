import { invalid } from '../../failure.ts'
import { presentMembers } from '../../members.ts'
import type { ChatForm } from '../chat-form.ts'
import { type Continued, keptItems, referencedItems } from './continuation.ts'
import { messagesOf } from './response-messages.ts'
import type { RememberedResponse } from './response-object.ts'
import { itemId } from './response-output.ts'
import { type ResponseItem, ResponseRequest, type ResponseTool } from './response-schemas.ts'
import { chunkOf, responseStream } from './response-stream.ts'

/** Returns the items of a request's input. */
const inputItems = ({ input }: Pick<ResponseRequest, 'input'>): ResponseItem[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input

/** Turns the request of a response into the body of a chat completion. Throws Failure for what does not exist here. */
function responseBody(request: ResponseRequest, continued: Continued): Record<string, unknown> {
  refuse(request)
  const referenced = referencedItems(continued)
  const { model, instructions, max_output_tokens, temperature, top_p, top_logprobs, parallel_tool_calls } = request
  const items = inputItems(request)
  if (items.length === 0) throw invalid('input', "'input' is empty. Send a text or at least one item.")
  const { user, include, reasoning } = request
  const logprobs = Boolean(top_logprobs) || include?.includes('message.output_text.logprobs')
  return presentMembers({
    model,
    messages: [
      ...(instructions ? [{ role: 'system', content: instructions }] : []),
      ...messagesOf(earlierOf(request, continued), 'previous_response_id', referenced),
      ...messagesOf(items, 'input', referenced),
    ],
    max_completion_tokens: max_output_tokens,
    temperature,
    top_p,
    logprobs: logprobs || undefined,
    top_logprobs: logprobs ? (top_logprobs ?? undefined) : undefined,
    parallel_tool_calls,
    reasoning_effort: reasoning?.effort,
    response_format: formatOf(request),
    truncation: request.truncation === 'auto' ? 'auto' : undefined,
    user,
    ...toolsOf(request),
  })
}

function earlierOf({ previous_response_id: id }: ResponseRequest, { earlier }: Continued): readonly ResponseItem[] {
  if (!id) return []
  const kept = Object.hasOwn(earlier, id) ? earlier[id] : undefined
  if (kept) return kept.flatMap(keptItems)
  throw invalid(
    'previous_response_id',
    `There is no response '${id.slice(0, 64)}' to continue. It was created with "store": false, deleted, or has expired: send the whole conversation as 'input'.`,
    'not_found',
  )
}

function refuse({ conversation, prompt, background, store }: ResponseRequest): void {
  const unsupported = (param: string, instead: string) =>
    invalid(param, `'${param}' does not exist here. ${instead}`, 'unsupported_parameter')
  if (conversation != null) throw unsupported('conversation', "Continue a response with 'previous_response_id'.")
  if (prompt != null) throw unsupported('prompt', "Send 'instructions' and 'input'.")
  if (background && store === false)
    throw invalid('store', "'background' needs 'store': a response in the background is read later.")
}

function formatOf({ text }: ResponseRequest): object | undefined {
  const format = text?.format
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return { type: 'json_object' }
  const { name, description, schema, strict } = format
  return { type: 'json_schema', json_schema: presentMembers({ name: name ?? 'answer', description, schema, strict }) }
}

function toolsOf({ tools, tool_choice }: ResponseRequest): { tools?: object[]; tool_choice?: unknown } {
  if (!tools?.length) return {}
  tools.forEach(refuseTool)
  if (typeof tool_choice === 'string' || !tool_choice) return { tools: tools.map(asChatTool), tool_choice }
  if (tool_choice.type === 'function')
    return {
      tools: tools.map(asChatTool),
      tool_choice: { type: 'function', function: { name: tool_choice.name ?? '' } },
    }
  if (tool_choice.type !== 'allowed_tools')
    throw invalid(
      'tool_choice.type',
      `'tool_choice.type' is '${tool_choice.type}', which does not exist here. Use 'function' or 'allowed_tools'.`,
      'unsupported_parameter',
    )
  const allowed = new Set(tool_choice.tools?.map(({ name }) => name))
  return {
    tools: tools.filter(({ name }) => allowed.has(name)).map(asChatTool),
    tool_choice: tool_choice.mode === 'required' ? 'required' : 'auto',
  }
}

function refuseTool({ type }: ResponseTool, at: number): void {
  if (type === 'function') return
  throw invalid(
    `tools[${at}].type`,
    `'tools[${at}]' is the tool '${type}', which runs at OpenAI only. Here models call functions of your program: send tools of the type 'function'.`,
    'unsupported_parameter',
  )
}

const asChatTool = ({ name, description, parameters, strict }: ResponseTool): object => ({
  type: 'function',
  function: presentMembers({ name, description, parameters, strict }),
})

/** What the server knows of a new response besides its request. */
export interface ResponseContext extends Continued {
  id: string
}

/** Longer inputs, which have images in them, are not kept. Characters of JSON. */
const maxKeptInput = 4 << 20

/** OpenAI's form of a response. */
export const responseForm: ChatForm<ResponseRequest, ResponseContext, RememberedResponse> = {
  schema: ResponseRequest,
  isStream: ({ stream, background }) => stream === true && background !== true,
  chatBody: responseBody,
  remembered,
  answer(remembered, completion, facts) {
    const stream = responseStream(remembered, facts)
    stream.chunk(chunkOf(completion))
    stream.end()
    return stream.ended!
  },
  stream: responseStream,
}

function remembered(request: ResponseRequest, { id }: ResponseContext): RememberedResponse {
  const { input: _, ...rest } = request
  const items = inputItems(request).map((item, at) => ({
    ...item,
    type: item.type ?? 'message',
    id: item.id ?? itemId(item.type ?? 'message', id, at, 'input'),
  }))
  const input = request.store === false ? undefined : JSON.stringify(items)
  const isStored = input !== undefined && input.length <= maxKeptInput
  return { id, isStored, input: isStored ? input : null, request: rest }
}
