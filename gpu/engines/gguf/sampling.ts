import { Failure } from '../../../core/failure.ts'
import type { ChatRequest } from '../../../core/schemas/chat.ts'

/** How the next token is chosen, in the words of node-llama-cpp. */
export interface Sampling {
  temperature: number
  topK: number
  topP: number
  minP: number
  seed: number
  /** Looks at what this answer has said so far; undefined when nothing is penalised. */
  penalties: { penalty: number; presencePenalty: number; frequencyPenalty: number } | undefined
  /** Token id to what is added to its logit. */
  bias: ReadonlyMap<number, number>
  /** Whether the caller gave a seed and may expect the same text for it. */
  reproducible: boolean
}

/** What a request may say about it; chat and completions have the same words. */
export type SamplingRequest = Pick<
  ChatRequest,
  | 'temperature'
  | 'top_p'
  | 'top_k'
  | 'min_p'
  | 'seed'
  | 'presence_penalty'
  | 'frequency_penalty'
  | 'repetition_penalty'
  | 'logit_bias'
>

/** llama.cpp takes this number to mean "draw one". */
const anySeed = 2 ** 32 - 1

/**
 * What the request says about choosing tokens. What it leaves open is as in llama-server, so that a model answers
 * alike in both: temperature 0.8, top_k 40, top_p 0.95, min_p 0.05. `randomSeed` is used when it names none.
 * Throws Failure `invalid_value`.
 */
export function samplingOf(request: SamplingRequest, vocabularySize: number, randomSeed: number): Sampling {
  const penalty = request.repetition_penalty ?? 1
  if (penalty <= 0)
    throw new Failure('invalid_value', "'repetition_penalty' must be greater than 0; 1 penalises nothing.", {
      param: 'repetition_penalty',
    })
  const presencePenalty = request.presence_penalty ?? 0
  const frequencyPenalty = request.frequency_penalty ?? 0
  const penalised = penalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0
  const temperature = request.temperature ?? 0.8
  const topP = request.top_p ?? 0.95
  return {
    // So small a temperature overflows, and top_p 0 leaves only the likeliest token; both mean: no chance involved.
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

/** Any whole number as one of 32 bits. */
export function seedOf(seed: number): number {
  const low = Number(BigInt.asUintN(32, BigInt(seed)))
  return low === anySeed ? anySeed - 1 : low
}

function biasOf(given: Record<string, number>, vocabularySize: number): Map<number, number> {
  const bias = new Map<number, number>()
  for (const [name, value] of Object.entries(given)) {
    if (!/^\d{1,9}$/.test(name) || Number(name) >= vocabularySize)
      throw new Failure(
        'invalid_value',
        `'logit_bias' has the key '${name}'; a token of this model is a number below ${vocabularySize}.`,
        {
          param: 'logit_bias',
        },
      )
    if (value !== 0) bias.set(Number(name), value)
  }
  return bias
}

/** The stop strings that can ever match. Throws Failure `invalid_value` for half a character. */
export function stopsOf(stop: ChatRequest['stop']): string[] {
  const stops = [stop ?? []].flat().filter(text => text !== '')
  if (stops.some(text => !text.isWellFormed()))
    throw new Failure('invalid_value', "'stop' holds half of a surrogate pair, which no text can contain.", {
      param: 'stop',
    })
  return stops
}

/**
 * How many tokens the answer may have: what was asked for, as far as it fits.
 * Throws Failure `context_length_exceeded` when not even one does.
 */
export function answerLimit(
  promptTokens: number,
  context: number,
  asked: number | null | undefined,
  param = 'messages',
): number {
  const room = context - promptTokens
  if (room < 1)
    throw new Failure(
      'context_length_exceeded',
      `'${param}' has ${promptTokens} tokens, but the context length of this model is ${context}, the answer included. Shorten it.`,
      { param },
    )
  return Math.min(asked ?? room, room)
}

/** Refuses what this engine cannot do rather than answer as if it had. Throws Failure `unsupported_parameter`. */
export function checkSupported(request: ChatRequest): void {
  if (request.functions?.length)
    throw new Failure(
      'unsupported_parameter',
      "The built-in engine cannot call 'functions'. Use 'tools', which replaced them.",
      { param: 'functions' },
    )
}
