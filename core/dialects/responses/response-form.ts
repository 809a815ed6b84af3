import { invalid } from '../../failure.ts'
import { presentMembers } from '../../members.ts'
import type { ChatForm, FormNotes } from '../chat-form.ts'
import { inTurns } from '../turns.ts'
import { type Continued, keptItems, referencedItems } from './continuation.ts'
import { messagesOf } from './response-messages.ts'
import type { RememberedResponse } from './response-object.ts'
import { itemId } from './response-output.ts'
import { type ResponseItem, ResponseRequest } from './response-schemas.ts'
import { chunkOf, responseStream } from './response-stream.ts'
import { toolFunctions, toolLists, toolMembers } from './response-tools.ts'

/** Returns the items of a request's input. */
const inputItems = ({ input }: Pick<ResponseRequest, 'input'>): ResponseItem[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input

/** Turns the request of a response into the body of a chat completion. Throws Failure for what does not exist here. */
function responseBody(request: ResponseRequest, continued: Continued, notes: FormNotes): Record<string, unknown> {
  refuse(request)
  const referenced = referencedItems(continued)
  const { model, instructions, max_output_tokens, temperature, top_p, top_logprobs, parallel_tool_calls } = request
  const items = inputItems(request)
  if (items.length === 0) throw invalid('input', "'input' is empty. Send a text or at least one item.")
  const earlier = earlierOf(request, continued)
  const functions = toolFunctions(toolLists(request.tools ?? [], items), notes)
  const { user, include, reasoning } = request
  const logprobs = Boolean(top_logprobs) || include?.includes('message.output_text.logprobs')
  return presentMembers({
    model,
    messages: inTurns([
      ...(instructions ? [{ role: 'system', content: instructions }] : []),
      ...messagesOf(earlier, 'previous_response_id', { referenced, functions, notes }),
      ...messagesOf(items, 'input', { referenced, functions, notes }),
    ]),
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
    store: request.store === false ? false : undefined,
    ...toolMembers(functions, request.tool_choice, notes),
  })
}

function earlierOf({ previous_response_id: id }: ResponseRequest, { earlier }: Continued): readonly ResponseItem[] {
  if (!id) return []
  const kept = Object.hasOwn(earlier, id) ? earlier[id] : undefined
  if (kept) return kept.flatMap(keptItems)
  throw invalid(
    'previous_response_id',
    `Previous response with id '${id.slice(0, 64)}' not found. It was created with "store": false, deleted, or has expired: send the whole conversation as 'input'.`,
    'previous_response_not_found',
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
  const tools = toolLists(request.tools ?? [], inputItems(request)).flatMap(list => list.tools)
  return { id, isStored, input: isStored ? input : null, request: { ...rest, ...(tools.length > 0 ? { tools } : {}) } }
}
