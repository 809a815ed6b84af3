import { ModerationRequest, ModerationResponse } from '../../schemas/moderation.ts'
import { expectedGpuMs, type Metering, textMetering } from '../metering.ts'
import type { TextTaskRecord } from '../task.ts'
import { textInputs } from '../text-inputs.ts'
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
  ...textInputs,
  family: 'moderation',
  runner: 'text',
  aliases: ['std/moderations'],
  category: 'text',
  request: ModerationRequest,
  otherFields: {},
  modelFaults: () => [],
  result: ModerationResponse,
  metering,
  isMediaPath: path => path.at(-1) === 'url' && path.at(-2) === 'image_url',
  isRepeatable: () => true,
  prepare: prepareModeration,
  shape: (answers, answerFormat: ModerationAnswerFormat) => shapeModeration(answers, answerFormat),
}
