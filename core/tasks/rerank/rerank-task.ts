import { RerankRequest, RerankResponse } from '../../schemas/vectors.ts'
import { rerankMetering } from '../metering.ts'
import type { TextTaskRecord } from '../task.ts'
import { sampleTexts, testQuery, testTexts } from '../task-test.ts'
import { textTask } from '../text-task.ts'
import { prepareRerank, type RerankAnswerFormat, rerank, shapeRerank } from './rerank.ts'

/** The record of reranking. */
export const rerankTask: TextTaskRecord = {
  ...rerank,
  ...textTask,
  family: 'rerank',
  aliases: ['std/reranking'],
  description: 'Order documents by their relevance to a query.',
  path: '/std/v1/rerank',
  trial: 'infer rerank MODEL "a question" "an answer" "something else"',
  test: {
    stream: false,
    body: model => ({ model, query: testQuery, documents: testTexts }),
    fault(answer) {
      const { results } = answer as { results: { index: number; relevance_score: number }[] }
      if (new Set(results.map(({ index }) => index)).size !== testTexts.length)
        return `It ranked ${results.length} of ${testTexts.length} documents.`
      const scores = results.map(one => one.relevance_score)
      if (!scores.every(Number.isFinite)) return 'A score is not a number.'
      if (scores.some((score, at) => at > 0 && score > scores[at - 1]!)) return 'The results are not sorted by score.'
      return results[0]!.index === 0 ? undefined : 'The document that answers the question is not first.'
    },
  },
  sample: { query: 'cat', documents: sampleTexts },
  form: { panel: 'fields', hidden: ['top_k', 'return_documents'], first: [] },
  request: RerankRequest,
  otherFields: { max_tokens_per_doc: null },
  result: RerankResponse,
  metering: rerankMetering,
  prepare: prepareRerank,
  shape: (answers, answerFormat: RerankAnswerFormat) => shapeRerank(answers[0]!, answerFormat),
}
