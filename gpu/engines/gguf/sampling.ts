import { invalid } from '../../../core/failure.ts'
import type { ChatRequest } from '../../../core/schemas/chat.ts'
import type { CompletionRequest } from '../../../core/schemas/completion.ts'

/** Sampling settings, named as in node-llama-cpp. */
export interface Sampling {
  temperature: number
  topK: number
  topP: number
  minP: number
  seed: number
  /** Penalties on tokens of this answer; undefined if there are none. */
  penalties: { penalty: number; presencePenalty: number; frequencyPenalty: number } | undefined
  /** Token id to the value added to its logit. */
  bias: ReadonlyMap<number, number>
  /** Whether the caller gave a seed and may expect the same text for it. */
  reproducible: boolean
}

/** llama.cpp interprets this number as "choose a random seed". */
const anySeed = 2 ** 32 - 1

/**
 * Reads the sampling settings of a request. Defaults are those of llama-server, so that both give similar answers:
 * temperature 0.8, top_k 40, top_p 0.95, min_p 0.05. `randomSeed` is used if the request has no seed.
 * Throws Failure `invalid_value`.
 */
export function samplingOf(
  request: Partial<ChatRequest> | CompletionRequest,
  vocabularySize: number,
  randomSeed: number,
): Sampling {
  const penalty = request.repetition_penalty ?? 1
  if (penalty <= 0)
    throw invalid('repetition_penalty', "'repetition_penalty' must be greater than 0; 1 penalises nothing.")
  const presencePenalty = request.presence_penalty ?? 0
  const frequencyPenalty = request.frequency_penalty ?? 0
  const penalised = penalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0
  const temperature = request.temperature ?? 0.8
  const topP = request.top_p ?? 0.95
  return {
    // A tiny temperature overflows and top_p 0 keeps only the most likely token, so both mean greedy sampling.
    temperature: temperature < 1e-4 || topP === 0 ? 0 : temperature,
    topK: Math.max(0, request.top_k ?? 40),
    topP: topP === 0 ? 1 : topP,
    minP: request.min_p ?? 0.05,
    seed: seedOf(request.seed ?? randomSeed),
    penalties: penalised ? { penalty, presencePenalty, frequencyPenalty } : undefined,
    bias: biasOf(request.logit_bias ?? {}, vocabularySize),
    reproducible: request.seed !== null && request.seed !== undefined,
  }
}

/** Maps any integer to 32 bits. */
export function seedOf(seed: number): number {
  const low = Number(BigInt.asUintN(32, BigInt(seed)))
  return low === anySeed ? anySeed - 1 : low
}

function biasOf(given: Record<string, number>, vocabularySize: number): Map<number, number> {
  const bias = new Map<number, number>()
  for (const [name, value] of Object.entries(given)) {
    if (!/^\d{1,9}$/.test(name) || Number(name) >= vocabularySize)
      throw invalid(
        'logit_bias',
        `'logit_bias' has the key '${name}'; a token of this model is a number below ${vocabularySize}.`,
      )
    if (value !== 0) bias.set(Number(name), value)
  }
  return bias
}

/** The non-empty stop strings. Throws Failure `invalid_value` for half of a surrogate pair. */
export function stopsOf(stop: ChatRequest['stop']): string[] {
  const stops = [stop ?? []].flat().filter(text => text !== '')
  if (stops.some(text => !text.isWellFormed()))
    throw invalid('stop', "'stop' holds half of a surrogate pair, which no text can contain.")
  return stops
}

/**
 * Maximum tokens of the answer: the requested number, limited to the free context.
 * Throws Failure `context_length_exceeded` if not even one token fits.
 */
export function answerLimit(
  promptTokens: number,
  context: number,
  requested: number | null | undefined,
  param = 'messages',
): number {
  const room = context - promptTokens
  if (room < 1)
    throw tooLong(
      param,
      context,
      `'${param}' has ${promptTokens} tokens, and the answer needs at least one. Shorten it.`,
    )
  return Math.min(requested ?? room, room)
}

/** The Failure of a request that does not fit in the context. It begins as OpenAI does: programs look for these words. */
export const tooLong = (param: string, context: number, message: string) =>
  invalid(param, `This model's maximum context length is ${context} tokens. ${message}`, 'context_length_exceeded')

/** Throws Failure `unsupported_parameter` for parameters that the engine does not support, instead of ignoring them. */
export function checkSupported(request: ChatRequest): void {
  if (request.functions?.length)
    throw invalid(
      'functions',
      "The built-in engine cannot call 'functions'. Use 'tools', which replaced them.",
      'unsupported_parameter',
    )
}
