import { presentMembers } from '../../present-members.ts'
import { EmbeddingsRequest, EmbeddingsResponse } from '../../schemas/vectors.ts'
import { vectorMetering } from '../metering.ts'
import { firstOf } from '../prediction.ts'
import type { TextTaskRecord } from '../task.ts'
import { textInputs } from '../text-inputs.ts'
import { type EmbeddingsAnswerFormat, embeddings, prepareEmbeddings, shapeEmbeddings } from './embeddings.ts'

/** The record of embeddings. */
export const embeddingsTask: TextTaskRecord = {
  ...embeddings,
  ...textInputs,
  family: 'embeddings',
  runner: 'text',
  aliases: ['std/embedding'],
  category: 'text',
  request: EmbeddingsRequest,
  otherFields: {},
  modelFaults: () => [],
  result: EmbeddingsResponse,
  metering: vectorMetering,
  isMediaPath: () => false,
  isRepeatable: () => true,
  prediction: {
    media: [],
    request: input => presentMembers({ input: firstOf(input, 'input', 'texts', 'text', 'prompt') }),
    output: result => (result as { data: { embedding: unknown }[] }).data.map(({ embedding }) => embedding),
  },
  prepare: prepareEmbeddings,
  shape: (answers, answerFormat: EmbeddingsAnswerFormat) => shapeEmbeddings(answers[0]!, answerFormat),
}
