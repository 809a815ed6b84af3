import type { LlamaEmbeddingContext, LlamaModel, Token } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import { failureOf } from '../../../core/schemas/issues.ts'
import { EmbeddingsRequest } from '../../../core/schemas/vectors.ts'
import type { Reply } from '../reply.ts'

/** The vector at length 1. A vector of zeros stays one: it points nowhere. */
export function normalized(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector)
  return length === 0 ? [...vector] : vector.map(value => value / length)
}

/** The first numbers of a vector, at length 1 again: what models trained for it (Matryoshka) allow. */
export function shortened(vector: readonly number[], dimensions: number | null | undefined): number[] {
  if (dimensions == null || dimensions === vector.length) return [...vector]
  if (dimensions > vector.length)
    throw new Failure(
      'invalid_value',
      `'dimensions' must be at most ${vector.length}, the size of this model's vectors.`,
      {
        param: 'dimensions',
      },
    )
  return normalized(vector.slice(0, dimensions))
}

/** Little-endian 32-bit floats. */
export const base64Of = (vector: readonly number[]): string =>
  Buffer.from(Float32Array.from(vector).buffer).toString('base64')

/** Of GGUF's ways to make one vector of those of all tokens, the one that makes a score. Source: llama_pooling_type. */
const rankPooling = 4

/**
 * A model says itself how its vectors are made (mean, first or last token), and llama.cpp does it so; one that does
 * not say gets the last token's, which has seen all others. Throws Failure `worker_error` for one that gives scores.
 */
export function checkPooling(model: Pick<LlamaModel, 'fileInfo'>): void {
  if (Number(model.fileInfo.architectureMetadata.pooling_type) === rankPooling)
    throw new Failure(
      'worker_error',
      'The model cannot make embeddings: its file says that it gives scores. Use it for std/rerank and std/score.',
    )
}

export interface EmbeddingParts {
  id: string
  model: LlamaModel
  embedding: LlamaEmbeddingContext
  vocabularySize: number
  /** Tokens of one text, with those that the model wants around it. */
  context: number
}

/** Vectors of length 1 for texts; the context works on one text at a time, in the order of the calls. */
export function openEmbedder({ model, embedding, vocabularySize, context }: EmbeddingParts) {
  /**
   * The tokens of a text or what the caller gave as such, shortened to `most` when that is not null.
   * Throws Failure for texts that are too long or tokens that do not exist, which would end the process.
   */
  function tokensOf(input: string | readonly number[], param: string, most: number | null): Token[] {
    const tokens = typeof input === 'string' ? model.tokenize(boundedText(input, context, param)) : [...input]
    const wrong = tokens.find(token => token >= vocabularySize)
    if (wrong !== undefined)
      throw new Failure(
        'invalid_value',
        `'${param}' holds the token ${wrong}; this model has tokens 0 to ${vocabularySize - 1}.`,
        {
          param,
        },
      )
    // A text of nothing but spaces has no tokens; the ones that frame every text still make a vector.
    const { bos, sep, eos } = model.tokens
    const frame = bos ?? sep ?? eos
    const known = (tokens.length === 0 && frame !== null ? [frame] : tokens) as Token[]
    const whole = embedding.calculateInputLength(known)
    const allowed = most === null ? context : Math.min(most, context)
    if (whole <= allowed) return known
    if (most !== null) return known.slice(0, Math.max(1, allowed - (whole - known.length)))
    throw new Failure(
      'context_length_exceeded',
      `'${param}' has ${whole} tokens, but the context length of this model is ${context}. Shorten it or send it in parts.`,
      { param },
    )
  }

  return {
    tokensOf,
    count: (tokens: Token[]): number => embedding.calculateInputLength(tokens),
    embed: async (tokens: Token[]): Promise<number[]> => normalized((await embedding.getEmbeddingFor(tokens)).vector),
  }
}

export type Embedder = ReturnType<typeof openEmbedder>

/** Counting the tokens of a text takes its time; one that cannot fit by far is refused by its characters. */
export function boundedText(text: string, context: number, param: string): string {
  if (text.length > context * 64)
    throw new Failure(
      'context_length_exceeded',
      `'${param}' has ${text.length} characters, far more than the context length of this model, ${context} tokens. Send it in parts.`,
      { param },
    )
  return text
}

/** What `truncate_prompt_tokens` says: null for "refuse what is too long", −1 for as much as the model reads. */
export const truncation = (asked: number | null | undefined, context: number): number | null =>
  asked == null || asked === 0 ? null : asked < 0 ? context : asked

/** Answers POST /v1/embeddings. */
export function openEmbeddings(parts: EmbeddingParts, { tokensOf, count, embed }: Embedder) {
  return async function embeddings(body: unknown, reply: Reply): Promise<void> {
    const checked = EmbeddingsRequest.safeParse(body)
    if (!checked.success) throw failureOf(checked.error, body)
    const { input, dimensions, encoding_format, truncate_prompt_tokens } = checked.data
    const one = typeof input === 'string' || typeof input[0] === 'number'
    const inputs = (one ? [input] : input) as (string | number[])[]
    const most = truncation(truncate_prompt_tokens, parts.context)
    const texts = inputs.map((text, at) => tokensOf(text, one ? 'input' : `input[${at}]`, most))
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
      model: parts.id,
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    })
  }
}
