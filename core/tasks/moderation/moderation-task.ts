import { ModerationRequest, ModerationResponse } from '../../schemas/moderation.ts'
import { expectedGpuMs, type Metering, textMetering } from '../metering.ts'
import type { TextTaskRecord } from '../task.ts'
import { sampleTexts, testQuery, testTexts } from '../task-test.ts'
import { textTask } from '../text-task.ts'
import { judgementLength, judgementTokens } from './judgement.ts'
import { type ModerationAnswerFormat, moderation, prepareModeration, shapeModeration } from './moderation.ts'

/** Meters the tokens of a chat for each input; a classifier uses less. */
const metering: Metering = {
  ...textMetering,
  estimate({ inputs: { input }, length }) {
    const count = Array.isArray(input) && input.every(one => typeof one === 'string') ? input.length : 1
    return {
      usage: {
        inputTokens: length + count * judgementLength,
        outputTokens: count * judgementTokens,
        gpuMs: expectedGpuMs,
      },
    }
  },
}

/** The record of moderation. */
export const moderationTask: TextTaskRecord = {
  ...moderation,
  ...textTask,
  family: 'moderation',
  aliases: ['std/moderations'],
  description: 'Say whether texts or images are harmful, and in which way.',
  path: '/std/v1/moderations',
  test: {
    stream: false,
    body: model => ({ model, input: [testQuery, testTexts[1]] }),
    fault(answer) {
      const { results } = answer as { results: { category_scores: Record<string, number> }[] }
      if (results.length !== 2) return `It returned ${results.length} results for two texts.`
      return results.every(one => Object.values(one.category_scores).every(Number.isFinite))
        ? undefined
        : 'A score is not a number.'
    },
  },
  sample: { input: sampleTexts[0] },
  form: { panel: 'fields', hidden: [], first: [] },
  request: ModerationRequest,
  result: ModerationResponse,
  metering,
  isMediaPath: path => path.at(-1) === 'url' && path.at(-2) === 'image_url',
  prepare: prepareModeration,
  shape: (answers, answerFormat: ModerationAnswerFormat) => shapeModeration(answers, answerFormat),
}
