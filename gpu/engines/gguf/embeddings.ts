import type { LlamaEmbeddingContext, LlamaModel, Token } from 'node-llama-cpp'
import { Failure, invalid } from '../../../core/failure.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { tasksBy } from '../../../core/schemas/task.ts'
import { EmbeddingsRequest } from '../../../core/schemas/vectors.ts'
import type { Handler } from '../http.ts'
import type { Exclusive } from './mutex.ts'
import { tooLong } from './sampling.ts'

/** Scales a vector to length 1. A zero vector stays zero because it has no direction. */
export function normalized(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector)
  return length === 0 ? [...vector] : vector.map(value => value / length)
}

/** Keeps the first numbers of a vector, scaled to length 1, for models trained for it (Matryoshka). */
export function shortened(vector: readonly number[], dimensions: number | null | undefined): number[] {
  if (dimensions == null || dimensions === vector.length) return [...vector]
  if (dimensions > vector.length)
    throw invalid('dimensions', `'dimensions' must be at most ${vector.length}, the size of this model's vectors.`)
  return normalized(vector.slice(0, dimensions))
}

/** Little-endian 32-bit floats. */
export const base64Of = (vector: readonly number[]): string =>
  Buffer.from(Float32Array.from(vector).buffer).toString('base64')

/** The pooling type of models that return a score. Source: llama_pooling_type. */
const rankPooling = 4

/**
 * Checks the pooling type in the model file (mean, first or last token), which llama.cpp applies; the default is the
 * last token, which has seen all others. Throws Failure `worker_error` for a model that returns scores.
 */
export function checkPooling(model: Pick<LlamaModel, 'fileInfo'>): void {
  if (Number(model.fileInfo.architectureMetadata.pooling_type) === rankPooling)
    throw new Failure(
      'worker_error',
      `The model cannot compute embeddings: according to its file it returns scores. Use it for ${tasksBy('rerank').join(' and ')}.`,
    )
}

/**
 * Computes vectors of length 1 for texts, one text at a time in the order of the calls. `context`: tokens of one text,
 * with those that the model wants around it.
 */
export function openEmbedder(
  model: LlamaModel,
  embedding: LlamaEmbeddingContext,
  vocabularySize: number,
  context: number,
  exclusive: Exclusive,
) {
  /**
   * Tokenizes a text, or checks tokens sent by the caller; truncates to `limit` if that is not null.
   * Throws Failure for texts that are too long and for unknown tokens, which would crash the process.
   */
  function tokensOf(input: string | readonly number[], param: string, limit: number | null): Token[] {
    const tokens =
      typeof input === 'string'
        ? model.tokenize(boundedText(input, context, param))
        : knownTokens(input, vocabularySize, param)
    // A text of spaces has no tokens, but the tokens added around every text still produce a vector.
    const { bos, sep, eos } = model.tokens
    const frame = bos ?? sep ?? eos
    const known = tokens.length === 0 && frame !== null ? [frame] : tokens
    const whole = embedding.calculateInputLength(known)
    const allowed = limit === null ? context : Math.min(limit, context)
    if (whole <= allowed) return known
    if (limit !== null) return known.slice(0, Math.max(1, allowed - (whole - known.length)))
    throw tooLong(param, context, `'${param}' has ${whole} tokens. Shorten it or send it in parts.`)
  }

  return {
    tokensOf,
    count: (tokens: Token[]): number => embedding.calculateInputLength(tokens),
    embed: (tokens: Token[]): Promise<number[]> =>
      exclusive(async () => normalized((await embedding.getEmbeddingFor(tokens)).vector)),
  }
}

export type Embedder = ReturnType<typeof openEmbedder>

/** Refuses tokens that the model does not have: llama.cpp would end the process. */
export function knownTokens(tokens: readonly number[], size: number, param: string): Token[] {
  const wrong = tokens.find(token => token >= size)
  if (wrong === undefined) return [...tokens] as Token[]
  throw invalid(param, `'${param}' contains the token ${wrong}; this model has tokens 0 to ${size - 1}.`)
}

/** Texts with more characters than this per token of the context are refused, because counting tokens is slow. */
export const maxCharactersPerToken = 64

/** Refuses texts far over the limit by their characters. */
export function boundedText(text: string, context: number, param: string): string {
  if (text.length > context * maxCharactersPerToken)
    throw tooLong(param, context, `'${param}' has ${text.length} characters, which is far more. Send it in parts.`)
  return text
}

/** The limit by `truncate_prompt_tokens`: null refuses texts that are too long, −1 means the context length. */
export const truncation = (requested: number | null | undefined, context: number): number | null =>
  requested == null || requested === 0 ? null : requested < 0 ? context : requested

export function openEmbeddings(options: { id: string; context: number; embedder: Embedder }): Handler {
  const { id, context, embedder } = options
  const { tokensOf, count, embed } = embedder
  return async (body, reply) => {
    const { input, dimensions, encoding_format, truncate_prompt_tokens } = parsed(EmbeddingsRequest, body)
    const one = typeof input === 'string' || typeof input[0] === 'number'
    const inputs = (one ? [input] : input) as (string | number[])[]
    const limit = truncation(truncate_prompt_tokens, context)
    const texts = inputs.map((text, at) => tokensOf(text, one ? 'input' : `input[${at}]`, limit))
    const data = []
    let promptTokens = 0
    for (const [index, tokens] of texts.entries()) {
      reply.signal.throwIfAborted()
      promptTokens += count(tokens)
      const vector = shortened(await embed(tokens), dimensions)
      data.push({ object: 'embedding', index, embedding: encoding_format === 'base64' ? base64Of(vector) : vector })
    }
    reply.json({
      object: 'list',
      data,
      model: id,
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    })
  }
}
