import type { Limits } from '../config.ts'
import { embeddings } from './embeddings/embeddings.ts'
import type { AnswerFormat } from './prepared.ts'
import { score } from './score/score.ts'

/** Returns how many vectors an answer must have. */
const vectorsIn = (answerFormat: AnswerFormat): number =>
  answerFormat.task === embeddings.id
    ? answerFormat.count
    : answerFormat.task === score.id && answerFormat.by === 'embeddings'
      ? answerFormat.left + answerFormat.right
      : 0

/** Returns the maximum bytes of an engine's answer. It grows with the number of requested vectors. */
export const answerBound = (
  answerFormat: AnswerFormat,
  limits: Pick<Limits, 'engine_answer' | 'engine_embedding'>,
): number => Math.max(limits.engine_answer, vectorsIn(answerFormat) * limits.engine_embedding)
