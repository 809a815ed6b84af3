import { invalid } from '../../../core/failure.ts'
import { ulid } from '../../../core/ids.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { ScoreRequest, type ScoreResponse } from '../../../core/schemas/vectors.ts'
import type { Handler } from '../http.ts'
import { type Embedder, truncation } from './embeddings.ts'
import type { Ranker } from './rerank.ts'

const sideNames = [
  ['text_1', 'text_2'],
  ['queries', 'documents'],
  ['queries', 'items'],
  ['data_1', 'data_2'],
] as const

export interface Text {
  text: string
  param: string
}

/** The pairs of a request: 1↔1, 1↔N, N↔1 or N↔N. Throws Failure for anything else. */
function pairsOf(request: ScoreRequest): [Text, Text][] {
  const names = sideNames.find(([one, two]) => request[one] != null && request[two] != null)
  if (!names)
    throw invalid(
      'text_1',
      "Send a pair to compare: 'text_1' and 'text_2' (or 'queries' and 'documents').",
      'missing_required_parameter',
    )
  const [left, right] = names.map((name): Text[] => {
    const texts = request[name]!
    return typeof texts === 'string'
      ? [{ text: texts, param: name }]
      : texts.map((text, at) => ({ text, param: `${name}[${at}]` }))
  }) as [Text[], Text[]]
  if (left.length !== right.length && left.length !== 1 && right.length !== 1)
    throw invalid(
      names[1],
      `'${names[0]}' has ${left.length} entries and '${names[1]}' has ${right.length}; send as many of both, or a single one.`,
    )
  const at = (side: Text[], pair: number) => side[side.length === 1 ? 0 : pair]!
  return Array.from({ length: Math.max(left.length, right.length) }, (_, pair) => [at(left, pair), at(right, pair)])
}

/** Scores pairs one after the other and counts their tokens. */
export type ScorePairs = (
  pairs: readonly [Text, Text][],
  most: number | null,
  signal: AbortSignal,
) => Promise<{ scores: number[]; promptTokens: number }>

/** By a cross-encoder that reads both texts together: probabilities. */
export const scoreByRanker =
  (ranker: Ranker): ScorePairs =>
  async (pairs, most, signal) =>
    ranker.scoreAll(
      pairs.map(([one, two]) => ranker.pair(ranker.tokensOf(one.text, one.param), two.text, two.param, most)),
      signal,
    )

/** By the angle between their vectors: cosines, −1 to 1. A text that stands in many pairs is read once. */
export const scoreByVectors =
  (embedder: Embedder): ScorePairs =>
  async (pairs, most, signal) => {
    const texts = [...new Set(pairs.flat())].map(text => ({
      text,
      tokens: embedder.tokensOf(text.text, text.param, most),
    }))
    const vectors = new Map<Text, number[]>()
    let promptTokens = 0
    for (const { text, tokens } of texts) {
      signal.throwIfAborted()
      promptTokens += embedder.count(tokens)
      vectors.set(text, await embedder.embed(tokens))
    }
    const cosine = (one: Text, two: Text) => {
      const other = vectors.get(two)!
      return vectors.get(one)!.reduce((sum, value, at) => sum + value * other[at]!, 0)
    }
    return { scores: pairs.map(([one, two]) => cosine(one, two)), promptTokens }
  }

export const openScore =
  ({ id, context, scorePairs }: { id: string; context: number; scorePairs: ScorePairs }): Handler =>
  async (body, reply) => {
    const request = parsed(ScoreRequest, body)
    const pairs = pairsOf(request)
    const most = truncation(request.truncate_prompt_tokens, context)
    const { scores, promptTokens } = await scorePairs(pairs, most, reply.signal)
    const response: ScoreResponse = {
      id: `score-${ulid()}`,
      object: 'list',
      created: Math.floor(Date.now() / 1000),
      model: id,
      data: scores.map((value, index) => ({ index, object: 'score', score: value })),
      usage: {
        prompt_tokens: promptTokens,
        total_tokens: promptTokens,
        completion_tokens: 0,
        prompt_tokens_details: null,
      },
    }
    reply.json(response)
  }
