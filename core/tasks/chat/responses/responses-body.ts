import { Failure } from '../../../failure.ts'
import type { ResponsesRequest } from '../../../schemas/responses.ts'
import { required } from './responses-content.ts'
import { messagesOf } from './responses-messages.ts'

/** Fields that would change the answer and that are not available, each with what to do instead. */
const unavailable = {
  previous_response_id: "responses are not stored here. Send the items of the conversation as 'input'",
  conversation: "conversations are not stored here. Send their items as 'input'",
  prompt: "stored prompts are not available here. Send the text as 'instructions' or 'input'",
} as const

/** Returns the body of a chat completion. Throws Failure whose `param` names a field of the request. */
export function responsesBody(request: ResponsesRequest): Record<string, unknown> {
  for (const [param, why] of Object.entries(unavailable))
    if ((request[param as keyof typeof unavailable] ?? null) !== null)
      throw new Failure('unsupported_parameter', `'${param}' is not supported: ${why}.`, { param })
  if (request.background)
    throw new Failure(
      'unsupported_parameter',
      "'background' is not supported: submit the conversation as a job with 'POST /api/jobs' and the task 'std/chat-completion'.",
      { param: 'background' },
    )
  const body: Record<string, unknown> = { model: request.model, messages: messagesOf(request) }
  const set = (name: string, value: unknown) => {
    if (value !== undefined && value !== null) body[name] = value
  }
  set('max_completion_tokens', request.max_output_tokens)
  set('temperature', request.temperature)
  set('top_p', request.top_p)
  set('user', request.user)
  set('reasoning_effort', request.reasoning?.effort)
  set('response_format', formatOf(request))
  if (showsLogprobs(request)) {
    body.logprobs = true
    set('top_logprobs', request.top_logprobs)
  }
  const tools = request.tools?.map(toolOf) ?? []
  const { choice, allowed } = choiceOf(request, tools)
  const offered = allowed ? tools.filter(tool => allowed.has(tool.function.name)) : tools
  if (offered.length > 0) {
    body.tools = offered
    set('tool_choice', choice)
    set('parallel_tool_calls', request.parallel_tool_calls)
  }
  return body
}

const showsLogprobs = ({ include, top_logprobs }: ResponsesRequest): boolean =>
  (top_logprobs ?? 0) > 0 || (include?.includes('message.output_text.logprobs') ?? false)

function formatOf({ text }: ResponsesRequest): object | undefined {
  const format = text?.format
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return format
  const { name, description, schema, strict } = format
  return {
    type: 'json_schema',
    json_schema: { name, schema, ...(description ? { description } : {}), ...(strict ? { strict } : {}) },
  }
}

type Tool = NonNullable<ResponsesRequest['tools']>[number]

function toolOf(tool: Tool, at: number) {
  const param = `tools[${at}]`
  if (tool.type !== 'function')
    throw new Failure(
      'unsupported_parameter',
      `'${param}' is the tool '${tool.type}', which is not available here. Define a tool of the type 'function' and run it yourself.`,
      { param: `${param}.type` },
    )
  const name = required(tool.name, `${param}.name`)
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(name))
    throw new Failure('invalid_value', `'${param}.name' must be 1 to 64 letters, digits, "_", "." and "-".`, {
      param: `${param}.name`,
    })
  const { description, parameters, strict } = tool
  return {
    type: 'function' as const,
    function: {
      name,
      ...(description ? { description } : {}),
      ...(parameters ? { parameters } : {}),
      ...(strict ? { strict } : {}),
    },
  }
}

function choiceOf(
  { tool_choice: choice }: ResponsesRequest,
  tools: readonly { function: { name: string } }[],
): { choice?: unknown; allowed?: Set<string> } {
  if (typeof choice !== 'object' || choice === null) return { choice }
  const known = (name: string | undefined, param: string): string => {
    if (tools.some(tool => tool.function.name === required(name, param))) return name!
    throw new Failure('invalid_value', `'tool_choice' names '${name}', which is not among 'tools'.`, { param })
  }
  if (choice.type === 'function')
    return { choice: { type: 'function', function: { name: known(choice.name, 'tool_choice.name') } } }
  if (choice.type === 'allowed_tools') {
    const names = required(choice.tools, 'tool_choice.tools').map(({ name }, at) =>
      known(typeof name === 'string' ? name : undefined, `tool_choice.tools[${at}].name`),
    )
    return { choice: choice.mode ?? 'auto', allowed: new Set(names) }
  }
  throw new Failure(
    'unsupported_parameter',
    `'tool_choice' is '${choice.type}', which is not available here. Use 'none', 'auto', 'required', 'function' or 'allowed_tools'.`,
    { param: 'tool_choice.type' },
  )
}
