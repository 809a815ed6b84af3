import type { LlamaModel, LlamaRankingContext, Token } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import { boundedText } from './embeddings.ts'

export interface RankerParts {
  model: LlamaModel
  ranking: LlamaRankingContext
  /** Tokens of a query and a document together, with those that the model wants around them. */
  context: number
}

/** A pair as tokens, ready to be scored. */
export interface Pair {
  query: Token[]
  document: Token[]
  promptTokens: number
}

/**
 * How query and document are put together, where node-llama-cpp's own way is not what the model learned: it writes
 * [CLS] query [EOS] [SEP] document [EOS], and a plain BERT, which has no [EOS], misses its last [SEP].
 * Undefined where its way is right or the model file brings a template.
 */
export function rankingTemplate(model: LlamaModel): `${string}{{query}}${string}{{document}}${string}` | undefined {
  const { bosString, sepString, eos } = model.tokens
  const vocabulary: string = model.vocabularyType
  if (model.fileInfo.metadata.tokenizer['chat_template.rerank'] !== undefined) return undefined
  if (vocabulary !== 'wpm' || eos !== null || sepString === null) return undefined
  return `${bosString ?? ''}{{query}}${sepString}{{document}}${sepString}`
}

/** Scores pairs with a cross-encoder: the probability, 0 to 1, that the document answers the query. */
export function openRanker({ model, ranking, context }: RankerParts) {
  const tokensOf = (text: string, param: string) =>
    model.tokenize(boundedText(text, context, param), false, 'trimLeadingSpace')

  return {
    tokensOf,
    /**
     * One pair, its document shortened to fit when `most` is not null. `param` names the document in messages.
     * Throws Failure `context_length_exceeded`.
     */
    pair(query: Token[], text: string, param: string, most: number | null): Pair {
      const document = tokensOf(text, param)
      const promptTokens = ranking.calculateInputLength(query, document)
      const allowed = most === null ? context : Math.min(most, context)
      if (promptTokens <= allowed) return { query, document, promptTokens }
      const room = document.length - (promptTokens - allowed)
      if (most !== null && room > 0) return { query, document: document.slice(0, room), promptTokens: allowed }
      throw new Failure(
        'context_length_exceeded',
        `The query and '${param}' together have ${promptTokens} tokens, but the context length of this model is ${context}. Shorten them.`,
        { param },
      )
    },
    score: ({ query, document }: Pair): Promise<number> => ranking.rank(query, document),
  }
}

export type Ranker = ReturnType<typeof openRanker>
