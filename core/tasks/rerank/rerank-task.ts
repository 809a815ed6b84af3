import { RerankRequest, RerankResponse } from '../../schemas/vectors.ts'
import { rerankMetering } from '../metering.ts'

import type { TextTaskRecord } from '../task.ts'
import { textInputs } from '../text-inputs.ts'
import { prepareRerank, type RerankAnswerFormat, rerank, shapeRerank } from './rerank.ts'

/** The record of reranking. */
export const rerankTask: TextTaskRecord = {
  ...rerank,
  ...textInputs,
  family: 'rerank',
  runner: 'text',
  aliases: ['std/reranking'],
  category: 'text',
  request: RerankRequest,
  otherFields: { max_tokens_per_doc: null },
  modelFaults: () => [],
  result: RerankResponse,
  metering: rerankMetering,
  isMediaPath: () => false,
  isRepeatable: () => true,
  prepare: prepareRerank,
  shape: (answers, answerFormat: RerankAnswerFormat) => shapeRerank(answers[0]!, answerFormat),
}
