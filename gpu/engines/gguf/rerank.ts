import type { LlamaModel, LlamaRankingContext, Token } from 'node-llama-cpp'
import { invalid } from '../../../core/failure.ts'
import { ulid } from '../../../core/ids.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { RerankRequest, type RerankResponse } from '../../../core/schemas/vectors.ts'
import type { Handler } from '../http.ts'
import { boundedText, truncation } from './embeddings.ts'
import type { Exclusive } from './mutex.ts'
import { tooLong } from './sampling.ts'

/** Ranks indices by score, best first; equal scores keep their order. `top` 0 means all. */
export const ranked = (scores: readonly number[], top: number): { index: number; relevance_score: number }[] =>
  scores
    .map((relevance_score, index) => ({ index, relevance_score }))
    .sort((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, top === 0 ? scores.length : top)

/** Converts a probability back to the model's logit; finite also for 0 and 1. */
export const logit = (probability: number): number =>
  Math.log(Math.max(probability, 1e-12) / Math.max(1 - probability, 1e-12))

export const openRerank =
  ({ id, context, ranker }: { id: string; context: number; ranker: Ranker }): Handler =>
  async (body, reply) => {
    const request = parsed(RerankRequest, body)
    const documents = request.documents.map((document, at) => {
      const text = typeof document === 'string' ? document : document.text
      if (text !== undefined) return text
      throw invalid(`documents[${at}]`, `'documents[${at}]' has no 'text'.`)
    })
    const most = truncation(request.truncate_prompt_tokens, context)
    const query = ranker.tokensOf(request.query, 'query')
    const pairs = documents.map((document, at) => ranker.pair(query, document, `documents[${at}]`, most))
    const { scores, promptTokens } = await ranker.scoreAll(pairs, reply.signal)
    const results = ranked(
      request.raw_scores ? scores.map(logit) : scores,
      request.top_n ?? request.top_k ?? request.topN ?? 0,
    )
    const given = (index: number) => documents[index]!
    const response: RerankResponse = {
      id: `rerank-${ulid()}`,
      object: 'list',
      model: id,
      data: results.map(item => (request.return_documents ? { ...item, document: given(item.index) } : item)),
      results: results.map(item =>
        request.return_documents ? { ...item, document: { text: given(item.index) } } : item,
      ),
      usage: { prompt_tokens: promptTokens, completion_tokens: 0, total_tokens: promptTokens },
      meta: { api_version: { version: '2' }, billed_units: { search_units: Math.ceil(documents.length / 100) } },
    }
    reply.json(response)
  }

/** Tokenizers that add a separator between two texts by default. Source: llama.cpp v0.5.0. */
const separating = new Set(['jina-v1-en', 'jina-v2-code', 'roberta-bpe'])

/** Reads the special tokens from a model file; undefined if the file contains a template. */
function marksOf({ tokens, fileInfo, vocabularyType }: LlamaModel) {
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

/** The special tokens around texts, from the model file. */
export type PairMarks = NonNullable<ReturnType<typeof marksOf>>

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

/**
 * Scores pairs with a cross-encoder: the probability, 0 to 1, that the document answers the query. `context`: tokens of a
 * query and a document together, special tokens included.
 */
export function openRanker(model: LlamaModel, ranking: LlamaRankingContext, context: number, exclusive: Exclusive) {
  const marks = marksOf(model)
  const internals = ranking as unknown as RankingInternals
  const lengthOf = (query: Token[], document: Token[]) =>
    marks ? pairOf(query, document, marks).length : ranking.calculateInputLength(query, document)
  const tokensOf = (text: string, param: string) =>
    model.tokenize(boundedText(text, context, param), false, 'trimLeadingSpace')
  const score = ({ query, document }: { query: Token[]; document: Token[] }): Promise<number> =>
    exclusive(() =>
      marks ? internals._evaluateRankingForInput(pairOf(query, document, marks)) : ranking.rank(query, document),
    )

  return {
    tokensOf,
    /**
     * Tokenizes a pair; truncates the document to `limit` if that is not null. `param` names the document in messages.
     * Throws Failure `context_length_exceeded`.
     */
    pair(query: Token[], text: string, param: string, limit: number | null) {
      const document = tokensOf(text, param)
      const promptTokens = lengthOf(query, document)
      const allowed = limit === null ? context : Math.min(limit, context)
      if (promptTokens <= allowed) return { query, document, promptTokens }
      const room = document.length - (promptTokens - allowed)
      if (limit !== null && room > 0) return { query, document: document.slice(0, room), promptTokens: allowed }
      throw tooLong(param, context, `The query and '${param}' together have ${promptTokens} tokens. Shorten them.`)
    },
    score,
    /** Scores pairs one after the other and counts their tokens. */
    async scoreAll(pairs: readonly (Parameters<typeof score>[0] & { promptTokens: number })[], signal: AbortSignal) {
      const scores: number[] = []
      for (const pair of pairs) {
        signal.throwIfAborted()
        scores.push(await score(pair))
      }
      return { scores, promptTokens: pairs.reduce((sum, pair) => sum + pair.promptTokens, 0) }
    },
  }
}

export type Ranker = ReturnType<typeof openRanker>
