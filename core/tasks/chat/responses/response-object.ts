import type { Failure } from '../../../failure.ts'
import type { ChatResponse } from '../../../schemas/chat.ts'
import type { ResponsesRequest } from '../../../schemas/responses.ts'

/** An item of the output. */
export type OutputItem = ReturnType<typeof messageItem | typeof callItem | typeof reasoningItem>
type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** What a response says besides the options of its request. */
export interface ResponseState {
  /** The part of the id that the response and its items share. */
  tail: string
  createdAt: number
  model: string
  status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  output: OutputItem[]
  usage?: ChatResponse['usage'] | null | undefined
  /** Why the answer was cut off. */
  reason?: 'max_output_tokens' | 'content_filter' | undefined
  failure?: Failure
}

/** The part of the ids that belongs to the job, or else to the completion of the engine. */
export const tailOf = (jobId: string | undefined, completionId: string): string =>
  (jobId ?? completionId).replace(/^(?:job_|chatcmpl-|cmpl-)/, '').slice(0, 48)

export const reasonOf = (finish: string | null): ResponseState['reason'] =>
  finish === 'length' ? 'max_output_tokens' : finish === 'content_filter' ? 'content_filter' : undefined

export const textPart = (text: string, logprobs: unknown[] = []) => ({
  type: 'output_text' as const,
  text,
  annotations: [],
  logprobs,
})
export const refusalPart = (refusal: string) => ({ type: 'refusal' as const, refusal })

export const messageItem = (
  id: string,
  content: (ReturnType<typeof textPart> | ReturnType<typeof refusalPart>)[],
  status: ItemStatus,
) => ({ id: `msg_${id}`, type: 'message' as const, status, role: 'assistant' as const, content })

export const callItem = (id: string, call: { id: string; name: string; arguments: string }, status: ItemStatus) => ({
  id: `fc_${id}`,
  type: 'function_call' as const,
  status,
  call_id: call.id,
  name: call.name,
  arguments: call.arguments,
})

/** Returns reasoning in the place that the request reads: the summary if it asked for one, else the content. */
export const reasoningItem = (id: string, text: string | undefined, request: ResponsesRequest, status: ItemStatus) => {
  const summarized = asSummary(request)
  return {
    id: `rs_${id}`,
    type: 'reasoning' as const,
    status,
    summary: summarized && text !== undefined ? [{ type: 'summary_text' as const, text }] : [],
    content: !summarized && text !== undefined ? [{ type: 'reasoning_text' as const, text }] : [],
    ...(text !== undefined && request.include?.includes('reasoning.encrypted_content')
      ? { encrypted_content: Buffer.from(text).toString('base64') }
      : {}),
  }
}

/** Whether the reasoning is sent as its summary. */
export const asSummary = ({ reasoning }: ResponsesRequest): boolean =>
  (reasoning?.summary ?? reasoning?.generate_summary ?? null) !== null

const codes: Partial<Record<number, string>> = { 400: 'invalid_prompt', 429: 'rate_limit_exceeded' }

/** Returns the response object, with the options of its request. */
export function responseObject(request: ResponsesRequest, state: ResponseState): object {
  const { tail, createdAt, model, status, output, usage, reason, failure } = state
  const text = request.text
  return {
    id: `resp_${tail}`,
    object: 'response',
    created_at: Math.floor(createdAt / 1000),
    status,
    background: false,
    completed_at: status === 'completed' ? Math.floor(Date.now() / 1000) : null,
    error: failure ? { code: codes[failure.status] ?? 'server_error', message: failure.message } : null,
    incomplete_details: reason && status === 'incomplete' ? { reason } : null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: null,
    metadata: request.metadata ?? {},
    model,
    output,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: null,
    reasoning: { effort: request.reasoning?.effort ?? null, summary: request.reasoning?.summary ?? null },
    service_tier: 'default',
    store: false,
    temperature: request.temperature ?? null,
    text: { format: text?.format ?? { type: 'text' }, ...(text?.verbosity ? { verbosity: text.verbosity } : {}) },
    tool_choice: request.tool_choice ?? 'auto',
    tools: (request.tools ?? []).map(({ type, name, description, parameters, strict }) => ({
      type,
      name,
      description: description ?? null,
      parameters: parameters ?? null,
      strict: strict ?? false,
    })),
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? null,
    truncation: 'disabled',
    ...(usage ? { usage: usageOf(usage) } : {}),
    ...(request.user ? { user: request.user } : {}),
    ...(request.safety_identifier ? { safety_identifier: request.safety_identifier } : {}),
    ...(request.prompt_cache_key ? { prompt_cache_key: request.prompt_cache_key } : {}),
  }
}

const usageOf = (usage: ChatResponse['usage']) => ({
  input_tokens: usage.prompt_tokens,
  input_tokens_details: { cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? 0, cache_write_tokens: 0 },
  output_tokens: usage.completion_tokens,
  output_tokens_details: { reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0 },
  total_tokens: usage.total_tokens,
})
