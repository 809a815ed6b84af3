import { ScoreRequest, ScoreResponse } from '../../schemas/vectors.ts'
import { scoreMetering } from '../metering.ts'

import type { TextTaskRecord } from '../task.ts'
import { textInputs } from '../text-inputs.ts'
import { prepareScore, type ScoreAnswerFormat, score, shapeScore } from './score.ts'

/** The record of scoring. */
export const scoreTask: TextTaskRecord = {
  ...score,
  ...textInputs,
  family: 'score',
  runner: 'text',
  aliases: [],
  category: 'text',
  request: ScoreRequest,
  otherFields: {},
  modelFaults: () => [],
  result: ScoreResponse,
  metering: scoreMetering,
  isMediaPath: () => false,
  isRepeatable: () => true,
  prepare: prepareScore,
  shape: (answers, answerFormat: ScoreAnswerFormat) => shapeScore(answers, answerFormat),
}
