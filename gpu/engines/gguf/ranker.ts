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

/** The tokens that a model wants around texts, as its file says. */
export interface PairMarks {
  bos: Token | null
  eos: Token | null
  sep: Token | null
  addBos: boolean
  addEos: boolean
  addSep: boolean
}

/** Tokenizers that put a separator between two texts where the file does not say. Source: llama.cpp v0.5.0. */
const separating = new Set(['jina-v1-en', 'jina-v2-code', 'roberta-bpe'])

/** Reads the marks from a model file; undefined where the file brings a template of its own. */
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

/** Query and document with the tokens that the model file asks for, as llama-server puts them together. */
export function pairOf(
  query: readonly Token[],
  document: readonly Token[],
  { bos, eos, sep, addBos, addEos, addSep }: PairMarks,
): Token[] {
  const one = (wanted: boolean, token: Token | null): Token[] => (wanted && token !== null ? [token] : [])
  // The separator stands for an end that the model does not have.
  const end = one(addEos, eos ?? sep)
  return [...one(addBos, bos), ...query, ...end, ...one(addSep, sep), ...document, ...end]
}

/**
 * node-llama-cpp's own `rank` writes [CLS] query [EOS] [SEP] document [EOS] whatever the file says, which gave a plain
 * BERT 13 tokens in place of 9, and other scores; with a template it puts one more [SEP] before the text. This is what
 * it calls below that. The version of the package is pinned.
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
     * One pair, its document shortened to fit when `most` is not null. `param` names the document in messages.
     * Throws Failure `context_length_exceeded`.
     */
    pair(query: Token[], text: string, param: string, most: number | null): Pair {
      const document = tokensOf(text, param)
      const promptTokens = lengthOf(query, document)
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
    score: ({ query, document }: Pair): Promise<number> =>
      marks ? internals._evaluateRankingForInput(pairOf(query, document, marks)) : ranking.rank(query, document),
  }
}

export type Ranker = ReturnType<typeof openRanker>
