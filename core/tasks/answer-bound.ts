import type { Limits } from '../config.ts'
import type { AnswerFormat } from './prepared.ts'

/** How many vectors an answer must have. */
const vectorsIn = (answerFormat: AnswerFormat): number =>
  answerFormat.task === 'std/embeddings'
    ? answerFormat.count
    : answerFormat.task === 'std/score' && answerFormat.by === 'embeddings'
      ? answerFormat.left + answerFormat.right
      : 0

/** Bytes that an engine may answer with: what was asked for takes what it takes, and more than that is a fault. */
export const answerBound = (
  answerFormat: AnswerFormat,
  limits: Pick<Limits, 'engine_answer' | 'engine_embedding'>,
): number => Math.max(limits.engine_answer, vectorsIn(answerFormat) * limits.engine_embedding)
