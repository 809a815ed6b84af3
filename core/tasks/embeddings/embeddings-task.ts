import { presentMembers } from '../../members.ts'
import { EmbeddingsRequest, EmbeddingsResponse } from '../../schemas/vectors.ts'
import { vectorMetering } from '../metering.ts'
import { firstOf } from '../prediction.ts'
import type { TextTaskRecord } from '../task.ts'
import { sampleTexts, testTexts } from '../task-test.ts'
import { textTask } from '../text-task.ts'
import { type EmbeddingsAnswerFormat, embeddings, prepareEmbeddings, shapeEmbeddings } from './embeddings.ts'

/** The record of embeddings. */
export const embeddingsTask: TextTaskRecord = {
  ...embeddings,
  ...textTask,
  family: 'embeddings',
  aliases: ['std/embedding'],
  description: 'Turn texts into vectors with an embedding model of this server.',
  path: '/std/v1/embeddings',
  trial: 'infer embed MODEL "Hello"',
  test: {
    stream: false,
    body: model => ({ model, input: [testTexts[0], testTexts[1], testTexts[0]] }),
    fault(answer) {
      const vectors = (answer as { data: { embedding: number[] }[] }).data.map(({ embedding }) => embedding)
      const [first, other, again] = vectors
      if (!first || !other || !again) return `It returned ${vectors.length} vectors for three texts.`
      if (vectors.some(vector => vector.length === 0 || vector.length !== first.length))
        return 'Its vectors have different lengths.'
      if (vectors.some(vector => !(Math.hypot(...vector) > 0))) return 'A vector is zero or not a number.'
      if (cosine(first, again) < 0.999) return 'The same text got two different vectors.'
      return cosine(first, other) > 0.9999 ? 'Different texts got the same vector.' : undefined
    },
  },
  sample: { input: sampleTexts[0], encoding_format: 'float' },
  form: { panel: 'fields', hidden: ['encoding_format', 'task', 'truncation'], first: [] },
  request: EmbeddingsRequest,
  result: EmbeddingsResponse,
  metering: vectorMetering,
  prediction: {
    media: [],
    request: input => presentMembers({ input: firstOf(input, 'input', 'texts', 'text', 'prompt') }),
    output: result => (result as { data: { embedding: unknown }[] }).data.map(({ embedding }) => embedding),
  },
  prepare: prepareEmbeddings,
  shape: (answers, answerFormat: EmbeddingsAnswerFormat) => shapeEmbeddings(answers[0]!, answerFormat),
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = a.reduce((sum, value, at) => sum + value * b[at]!, 0)
  return dot / (Math.hypot(...a) * Math.hypot(...b))
}
