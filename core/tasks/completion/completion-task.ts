import { CompletionRequest, CompletionResponse } from '../../schemas/completion.ts'
import { textMetering } from '../metering.ts'
import { isRepeatableSample } from '../sampling.ts'
import type { TextTaskRecord } from '../task.ts'
import { textInputs } from '../text-inputs.ts'
import { type CompletionAnswerFormat, completion, prepareCompletion, shapeCompletion } from './completion.ts'

/** The record of completions. */
export const completionTask: TextTaskRecord = {
  ...completion,
  ...textInputs,
  family: 'completion',
  runner: 'text',
  aliases: ['std/completions'],
  category: 'text',
  request: CompletionRequest,
  otherFields: {},
  modelFaults: () => [],
  result: CompletionResponse,
  metering: textMetering,
  isMediaPath: () => false,
  isRepeatable: isRepeatableSample,
  prepare: prepareCompletion,
  shape: (answers, answerFormat: CompletionAnswerFormat) => shapeCompletion(answers, answerFormat),
}
