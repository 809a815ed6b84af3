import { invalid } from '../../../../core/failure.ts'
import { type ChatRequest, toolSelection } from '../../../../core/schemas/chat.ts'

/**
 * How a family of models writes function calls. A `native` form is explained to the model by its own chat template. For
 * templates without such an explanation infer adds one, for the form of Hermes.
 */
export interface ToolCallForm {
  family: 'hermes' | 'llama' | 'mistral' | 'mistral-named'
  /** Text before a call. */
  marker: string
  /** Text after a call, if a call does not end with its JSON. */
  close: string | undefined
  /** Whether an answer may begin with a call without its marker. */
  bare: boolean
  /** The JSON member with the arguments. */
  argumentsKey: 'arguments' | 'parameters'
  /** Text between two calls, besides white space. */
  separator: string
}

export const hermes: ToolCallForm = {
  family: 'hermes',
  marker: '<tool_call>',
  close: '</tool_call>',
  bare: false,
  argumentsKey: 'arguments',
  separator: '',
}

const llama: ToolCallForm = {
  family: 'llama',
  marker: '<|python_tag|>',
  close: undefined,
  bare: true,
  argumentsKey: 'parameters',
  separator: ';',
}

const mistral: ToolCallForm = {
  family: 'mistral',
  marker: '[TOOL_CALLS]',
  close: undefined,
  bare: false,
  argumentsKey: 'arguments',
  separator: '',
}

/**
 * Returns the form in which a chat template seems to write calls, detected by the typical texts of a model family.
 * Undefined for templates without tools, or with a form that infer does not support.
 */
export function toolCallFormOf(template: string): ToolCallForm | undefined {
  if (!/\btools\b/.test(template)) return undefined
  if (template.includes('[TOOL_CALLS]'))
    return template.includes('[ARGS]') ? { ...mistral, family: 'mistral-named' } : mistral
  if (template.includes('<tool_call>')) return hermes
  if (template.includes('<|python_tag|>') || (template.includes('ipython') && /["']parameters["']/.test(template)))
    return llama
  return undefined
}

/** All texts that a model may have control tokens for. */
export const marksOf = ({ family, marker, close }: ToolCallForm): string[] => [
  marker,
  ...(close === undefined ? [] : [close]),
  ...(family === 'mistral-named' ? ['[ARGS]', '[CALL_ID]'] : []),
]

/** Returns the possible beginnings of a call without a marker, as sequences of words with white space between. */
export const openingsOf = (names: readonly string[]): string[][] =>
  names.flatMap(name => [
    ['{', '"name"', ':', JSON.stringify(name)],
    ['{', '"type"', ':', '"function"', ',', '"name"', ':', JSON.stringify(name)],
  ])

export type RequestTool = NonNullable<ChatRequest['tools']>[number]

/** The functions that an answer may or must call. */
export interface ToolCalling {
  form: ToolCallForm
  /** The tools of the request with their indexes; only the named one if the request names one. */
  tools: readonly { tool: RequestTool; at: number }[]
  forced: boolean
  parallel: boolean
}

/**
 * Returns what the request allows and requires of calls; undefined if it allows none. Throws Failure `invalid_value` if
 * `tool_choice` requires a tool that the request does not have.
 */
export function toolCallingOf(request: ChatRequest, form: ToolCallForm): ToolCalling | undefined {
  const selection = toolSelection(request)
  const choice = selection.tool_choice ?? 'auto'
  const all = (selection.tools ?? []).map((tool, at) => ({ tool, at }))
  if (choice === 'none' || (choice === 'auto' && all.length === 0)) return undefined
  if (all.length === 0) throw invalid('tool_choice', "'tool_choice' needs 'tools' to choose from.")
  const parallel = request.parallel_tool_calls ?? true
  if (typeof choice === 'string') return { form, tools: all, forced: choice === 'required', parallel }
  const tools = all.filter(({ tool }) => tool.function.name === choice.function.name)
  if (tools.length === 0)
    throw invalid('tool_choice', `'tool_choice' names '${choice.function.name}', which is not among 'tools'.`)
  // A request that names the function needs its arguments once.
  return { form, tools, forced: true, parallel: false }
}
