import { ScoreRequest, ScoreResponse } from '../../schemas/vectors.ts'
import { scoreMetering } from '../metering.ts'
import type { TextTaskRecord } from '../task.ts'
import { sampleTexts, testQuery, testTexts } from '../task-test.ts'
import { textTask } from '../text-task.ts'
import { prepareScore, type ScoreAnswerFormat, score, shapeScore } from './score.ts'

/** The record of scoring. */
export const scoreTask: TextTaskRecord = {
  ...score,
  ...textTask,
  family: 'score',
  aliases: [],
  description: 'Score how well pairs of texts fit together.',
  path: '/std/v1/score',
  test: {
    stream: false,
    body: model => ({ model, text_1: testQuery, text_2: testTexts }),
    fault(answer) {
      const scores = (answer as { data: { score: number }[] }).data.map(one => one.score)
      if (scores.length !== testTexts.length)
        return `It returned ${scores.length} scores for ${testTexts.length} texts.`
      if (!scores.every(Number.isFinite)) return 'A score is not a number.'
      return scores[0] === Math.max(...scores)
        ? undefined
        : 'The text that answers the question does not have the highest score.'
    },
  },
  sample: { text_1: sampleTexts[0], text_2: sampleTexts[1] },
  form: { panel: 'fields', hidden: ['queries', 'documents', 'items', 'data_1', 'data_2'], first: [] },
  request: ScoreRequest,
  result: ScoreResponse,
  metering: scoreMetering,
  prepare: prepareScore,
  shape: (answers, answerFormat: ScoreAnswerFormat) => shapeScore(answers, answerFormat),
}
