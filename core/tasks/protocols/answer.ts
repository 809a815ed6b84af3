import { bufferOf } from '../../cpu/thread-work.ts'
import { Failure } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import { isObject, jsonOf, listOf } from '../../json.ts'
import type { Usage } from '../../store/store.ts'
import { errorIn } from './engine-error.ts'

/** The Failure for an invalid answer of an engine. Engine output is untrusted: all functions here check it. */
export const engineFault = (what: string): Failure =>
  new Failure('worker_error', `The engine answered ${what}. Its log has more; trying again may help.`)

/** Parses an engine's answer as an object. A bare list, as in rerank answers of TEI and SGLang, becomes its `data`. */
export function parseAnswer(bytes: Uint8Array): Record<string, unknown> {
  const value = jsonOf(bufferOf(bytes).toString('utf8'))
  if (value === undefined) throw engineFault('something that is not JSON')
  if (Array.isArray(value)) return { data: value }
  if (!isObject(value)) throw engineFault('JSON that is not an object')
  const wrong = errorIn(value)
  if (wrong) throw wrong
  return value
}

/** Returns the text of a string or of a list of parts of type `text`; undefined for other values. */
export function answerText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return undefined
  return value
    .map((part: { type?: unknown; text?: unknown } | null) => (typeof part?.text === 'string' ? part.text : ''))
    .join('')
}

/** Returns a time in Unix seconds, without the upper limit of token counts; undefined if invalid. */
const secondOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined

/** Returns the usage of an answer: beside the choices, in one of them (Moonshot), or in `x_groq` (Groq). */
export function answerUsageObject(answer: Record<string, unknown>): unknown {
  const choices = listOf(answer.choices) as ({ usage?: unknown } | null)[]
  return (
    answer.usage ??
    choices.find(choice => choice?.usage)?.usage ??
    (answer.x_groq as { usage?: unknown } | null | undefined)?.usage
  )
}

/** Returns the complete usage object of a chat or completion. */
export function usageBody({ inputTokens, cachedTokens = 0, outputTokens, reasoningTokens = 0 }: Usage) {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

/** Returns the members with which the answers of a chat or completion begin. */
export const answerHead = <Kind extends string>(
  { id, created }: Record<string, unknown>,
  { object, prefix, modelId }: { object: Kind; prefix: string; modelId: string },
) => ({
  id: typeof id === 'string' && id ? id : `${prefix}-${ulid()}`,
  object,
  created: secondOf(created) ?? Math.floor(Date.now() / 1000),
  model: modelId,
})

export const fingerprintOf = ({ system_fingerprint: given }: Record<string, unknown>): string =>
  typeof given === 'string' ? given : 'fp_infer'

const maxTokens = 100_000_000

/** Returns a token count of an engine as a whole number from 0; an invalid value is 0. */
export const tokenCount = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.min(Math.floor(value), maxTokens) : 0

type TokenUsage = Required<Pick<Usage, 'inputTokens' | 'cachedTokens' | 'outputTokens' | 'reasoningTokens'>>

/** Returns the usage of several answers together. */
export function usageOfAll(answers: readonly Record<string, unknown>[]): TokenUsage {
  const sum = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 }
  for (const answer of answers) {
    const usage = answerUsage(answerUsageObject(answer))
    for (const measure of Object.keys(sum) as (keyof TokenUsage)[]) sum[measure] += usage[measure]
  }
  return sum
}

/** Parses the usage object of an answer; absent or invalid members count as 0. */
export function answerUsage(value: unknown): TokenUsage {
  const usage = (value ?? {}) as {
    prompt_tokens?: unknown
    completion_tokens?: unknown
    total_tokens?: unknown
    prompt_tokens_details?: { cached_tokens?: unknown } | null
    completion_tokens_details?: { reasoning_tokens?: unknown } | null
  }
  const inputTokens =
    tokenCount(usage.prompt_tokens) || (usage.completion_tokens === undefined ? tokenCount(usage.total_tokens) : 0)
  const outputTokens = tokenCount(usage.completion_tokens)
  const cachedTokens = Math.min(inputTokens, tokenCount(usage.prompt_tokens_details?.cached_tokens))
  const reasoningTokens = Math.min(outputTokens, tokenCount(usage.completion_tokens_details?.reasoning_tokens))
  return { inputTokens, cachedTokens, outputTokens, reasoningTokens }
}

/** Returns a finite number. Throws Failure `worker_error` for other values. */
export function scoreNumber(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw engineFault('a score that is not a number')
  return value
}

export const sigmoid = (logit: number): number => 1 / (1 + Math.exp(-logit))

const finishReasons = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])

/** Finish reasons of TGI, Anthropic, Cohere, Gemini and SGLang. */
const otherFinishReasons: Record<string, string> = {
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

type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'

/**
 * Returns the finish reason of a choice as in the OpenAI API; undefined if the engine does not send one. An unknown reason
 * becomes `stop`. Throws Failure `worker_error` if the engine aborted: a partial answer must not look complete.
 */
export function finishReason(value: unknown): FinishReason | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  const reason = value.toLowerCase()
  if (finishReasons.has(reason)) return reason as FinishReason
  if (reason === 'abort' || reason === 'aborted' || reason === 'error' || reason === 'cancelled')
    throw new Failure('worker_error', `The engine broke its answer off (${reason}). Trying again may help.`)
  return (otherFinishReasons[reason] ?? 'stop') as FinishReason
}
