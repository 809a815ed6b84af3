import type { Limits } from '../config.ts'
import type { Want } from './prepared.ts'

/** How many vectors an answer must have. */
const vectorsIn = (want: Want): number =>
  want.task === 'std/embeddings'
    ? want.count
    : want.task === 'std/score' && want.by === 'embeddings'
      ? want.left + want.right
      : 0

/** Bytes that an engine may answer with: what was asked for takes what it takes, and more than that is a fault. */
export const answerBound = (want: Want, limits: Pick<Limits, 'engine_answer' | 'engine_embedding'>): number =>
  Math.max(limits.engine_answer, vectorsIn(want) * limits.engine_embedding)
