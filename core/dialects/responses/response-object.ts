import type { ChatResponse } from '../../schemas/chat.ts'
import type { ResponseRequest, ResponseTool } from './response-schemas.ts'

/** What the answer to a request repeats of it, and what was decided about it. */
export interface RememberedResponse {
  id: string
  isStored: boolean
  /** The items of its input with ids, as JSON text; null if they are not kept. */
  input: string | null
  request: Omit<ResponseRequest, 'input'>
}

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

/** What changes while a response is generated. */
export interface ResponseState {
  status: ResponseStatus
  /** Unix seconds. */
  createdAt: number
  completedAt?: number
  output: readonly object[]
  usage?: ChatResponse['usage'] | null | undefined
  incomplete?: 'max_output_tokens' | 'content_filter' | undefined
  error?: { code: string; message: string }
}

/** Returns a response as its readers get it, with all members of OpenAI's. */
export function responseObject({ id, isStored, request }: RememberedResponse, state: ResponseState): object {
  const { text, reasoning, metadata, tools } = request
  return {
    id,
    object: 'response',
    created_at: state.createdAt,
    status: state.status,
    background: request.background ?? false,
    completed_at: state.completedAt ?? null,
    error: state.error ?? null,
    incomplete_details: state.incomplete ? { reason: state.incomplete } : null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: null,
    model: request.model,
    output: state.output,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    service_tier: 'default',
    store: isStored,
    temperature: request.temperature ?? null,
    text: { format: text?.format ?? { type: 'text' }, verbosity: text?.verbosity || undefined },
    tool_choice: request.tool_choice ?? 'auto',
    tools: (tools ?? []).map(tool => (tool.type === 'function' ? shownFunction(tool) : tool)),
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? null,
    truncation: request.truncation ?? 'disabled',
    metadata: metadata ?? {},
    usage: state.usage ? usageOf(state.usage) : undefined,
    user: request.user || undefined,
  }
}

const shownFunction = ({ type, name, description, parameters, strict }: ResponseTool) => ({
  type,
  name,
  description: description ?? null,
  parameters: parameters ?? null,
  strict: strict ?? false,
})

const usageOf = ({
  prompt_tokens,
  completion_tokens,
  prompt_tokens_details: prompt,
  completion_tokens_details: completion,
}: ChatResponse['usage']) => ({
  input_tokens: prompt_tokens,
  input_tokens_details: { cached_tokens: prompt?.cached_tokens ?? 0, cache_write_tokens: 0 },
  output_tokens: completion_tokens,
  output_tokens_details: { reasoning_tokens: completion?.reasoning_tokens ?? 0 },
  total_tokens: prompt_tokens + completion_tokens,
})
