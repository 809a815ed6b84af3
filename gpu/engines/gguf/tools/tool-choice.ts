import { invalid } from '../../../../core/failure.ts'
import type { ChatRequest } from '../../../../core/schemas/chat.ts'
import type { ToolCallForm } from './call-form.ts'

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
  const choice = request.tool_choice ?? 'auto'
  const all = (request.tools ?? []).map((tool, at) => ({ tool, at }))
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
