import { Failure } from '../../../core/failure.ts'
import { ulid } from '../../../core/ids.ts'
import { failureOfIssues } from '../../../core/schemas/issues.ts'
import { RerankRequest, type RerankResponse } from '../../../core/schemas/vectors.ts'
import type { EngineReply } from '../reply.ts'
import { truncation } from './embeddings.ts'
import type { Ranker } from './ranker.ts'

/** Ranks indices by score, best first; equal scores keep their order. `top` 0 means all. */
export const ranked = (scores: readonly number[], top: number): { index: number; relevance_score: number }[] =>
  scores
    .map((relevance_score, index) => ({ index, relevance_score }))
    .sort((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, top === 0 ? scores.length : top)

/** Converts a probability back to the model's logit; finite also for 0 and 1. */
export const logit = (probability: number): number =>
  Math.log(Math.max(probability, 1e-12) / Math.max(1 - probability, 1e-12))

/** Answers POST /v1/rerank. */
export function openRerank({ id, context, ranker }: { id: string; context: number; ranker: Ranker }) {
  return async function rerank(body: unknown, reply: EngineReply): Promise<void> {
    const checked = RerankRequest.safeParse(body)
    if (!checked.success) throw failureOfIssues(checked.error, body)
    const request = checked.data
    const documents = request.documents.map((document, at) => {
      const text = typeof document === 'string' ? document : document.text
      if (text !== undefined) return text
      throw new Failure('invalid_value', `'documents[${at}]' has no 'text'.`, { param: `documents[${at}]` })
    })
    const most = truncation(request.truncate_prompt_tokens, context)
    const query = ranker.tokensOf(request.query, 'query')
    const pairs = documents.map((document, at) => ranker.pair(query, document, `documents[${at}]`, most))
    const scores: number[] = []
    for (const pair of pairs) {
      reply.signal.throwIfAborted()
      const probability = await ranker.score(pair)
      scores.push(request.raw_scores ? logit(probability) : probability)
    }
    const results = ranked(scores, request.top_n ?? request.top_k ?? request.topN ?? 0)
    const promptTokens = pairs.reduce((sum, pair) => sum + pair.promptTokens, 0)
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
}
