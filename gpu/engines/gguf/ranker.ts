import type { LlamaModel, LlamaRankingContext, Token } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import { boundedText } from './embeddings.ts'

export interface RankerParts {
  model: LlamaModel
  ranking: LlamaRankingContext
  /** Maximum tokens of a query and a document together, including special tokens. */
  context: number
}

/** A pair as tokens, ready to be scored. */
export interface Pair {
  query: Token[]
  document: Token[]
  promptTokens: number
}

/** The special tokens around texts, from the model file. */
export interface PairMarks {
  bos: Token | null
  eos: Token | null
  sep: Token | null
  addBos: boolean
  addEos: boolean
  addSep: boolean
}

/** Tokenizers that add a separator between two texts by default. Source: llama.cpp v0.5.0. */
const separating = new Set(['jina-v1-en', 'jina-v2-code', 'roberta-bpe'])

/** Reads the special tokens from a model file; undefined if the file contains a template. */
function marksOf({ tokens, fileInfo, vocabularyType }: LlamaModel): PairMarks | undefined {
  const { tokenizer } = fileInfo.metadata
  if (tokenizer['chat_template.rerank'] !== undefined) return undefined
  const ggml: { pre?: string; add_sep_token?: boolean } = tokenizer.ggml
  const vocabulary: string = vocabularyType
  return {
    bos: tokens.bos,
    eos: tokens.eos,
    sep: tokens.sep,
    addBos: tokens.shouldPrependBosToken,
    addEos: tokens.shouldAppendEosToken,
    addSep: ggml.add_sep_token ?? (vocabulary === 'wpm' || separating.has(ggml.pre ?? '')),
  }
}

/** Joins query and document with the special tokens of the model file, as llama-server does. */
export function pairOf(
  query: readonly Token[],
  document: readonly Token[],
  { bos, eos, sep, addBos, addEos, addSep }: PairMarks,
): Token[] {
  const one = (wanted: boolean, token: Token | null): Token[] => (wanted && token !== null ? [token] : [])
  // The separator replaces a missing end token.
  const end = one(addEos, eos ?? sep)
  return [...one(addBos, bos), ...query, ...end, ...one(addSep, sep), ...document, ...end]
}

/**
 * Internal functions below node-llama-cpp's `rank`, which always writes [CLS] query [EOS] [SEP] document [EOS]: for a
 * plain BERT that is 13 tokens instead of 9, with different scores, and with a template it adds one more [SEP]. The
 * package version is pinned.
 */
interface RankingInternals {
  _evaluateRankingForInput(tokens: readonly Token[]): Promise<number>
}

/** Scores pairs with a cross-encoder: the probability, 0 to 1, that the document answers the query. */
export function openRanker({ model, ranking, context }: RankerParts) {
  const marks = marksOf(model)
  const internals = ranking as unknown as RankingInternals
  const lengthOf = (query: Token[], document: Token[]) =>
    marks ? pairOf(query, document, marks).length : ranking.calculateInputLength(query, document)
  const tokensOf = (text: string, param: string) =>
    model.tokenize(boundedText(text, context, param), false, 'trimLeadingSpace')

  return {
    tokensOf,
    /**
     * Tokenizes a pair; truncates the document to `limit` if that is not null. `param` names the document in messages.
     * Throws Failure `context_length_exceeded`.
     */
    pair(query: Token[], text: string, param: string, limit: number | null): Pair {
      const document = tokensOf(text, param)
      const promptTokens = lengthOf(query, document)
      const allowed = limit === null ? context : Math.min(limit, context)
      if (promptTokens <= allowed) return { query, document, promptTokens }
      const room = document.length - (promptTokens - allowed)
      if (limit !== null && room > 0) return { query, document: document.slice(0, room), promptTokens: allowed }
      throw new Failure(
        'context_length_exceeded',
        `The query and '${param}' together have ${promptTokens} tokens, but the context length of this model is ${context}. Shorten them.`,
        { param },
      )
    },
    score: ({ query, document }: Pair): Promise<number> =>
      marks ? internals._evaluateRankingForInput(pairOf(query, document, marks)) : ranking.rank(query, document),
  }
}

export type Ranker = ReturnType<typeof openRanker>
