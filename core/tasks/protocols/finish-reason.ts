import { Failure } from '../../failure.ts'

const known = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])

/** Other words for the same, from TGI, Anthropic, Cohere, Gemini and SGLang. */
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
 * Why a choice ended, in the words that clients know; undefined where the engine does not say. A word that nobody knows
 * is as good as `stop`. Throws Failure `worker_error` when the engine says that it broke off: what there is of the
 * answer must not pass for the whole.
 */
export function finishReason(value: unknown): FinishReason | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  const reason = value.toLowerCase()
  if (known.has(reason)) return reason as FinishReason
  if (reason === 'abort' || reason === 'aborted' || reason === 'error' || reason === 'cancelled')
    throw new Failure('worker_error', `The engine broke its answer off (${reason}). Trying again may help.`)
  return (others[reason] ?? 'stop') as FinishReason
}
