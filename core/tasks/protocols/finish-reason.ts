import { Failure } from '../../failure.ts'

const known = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])

/** Finish reasons of TGI, Anthropic, Cohere, Gemini and SGLang. */
const others: Record<string, string> = {
  eos: 'stop',
  eos_token: 'stop',
  stop_sequence: 'stop',
  end_turn: 'stop',
  complete: 'stop',
  repetition: 'stop',
  limit: 'length',
  max_tokens: 'length',
  max_length: 'length',
  model_length: 'length',
  tool_use: 'tool_calls',
  tool_call: 'tool_calls',
  safety: 'content_filter',
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'

/**
 * Returns the finish reason of a choice as in the OpenAI API; undefined if the engine does not send one. An unknown reason
 * becomes `stop`. Throws Failure `worker_error` if the engine aborted: a partial answer must not look complete.
 */
export function finishReason(value: unknown): FinishReason | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  const reason = value.toLowerCase()
  if (known.has(reason)) return reason as FinishReason
  if (reason === 'abort' || reason === 'aborted' || reason === 'error' || reason === 'cancelled')
    throw new Failure('worker_error', `The engine broke its answer off (${reason}). Trying again may help.`)
  return (others[reason] ?? 'stop') as FinishReason
}
