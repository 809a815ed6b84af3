import { CompletionRequest, CompletionResponse } from '../../schemas/completion.ts'
import { textMetering } from '../metering.ts'
import { isRepeatableSample, samplingFeatures } from '../sampling.ts'
import type { TextTaskRecord } from '../task.ts'
import { sampleText, testOfStream } from '../task-test.ts'
import { textTask } from '../text-task.ts'
import { type CompletionAnswerFormat, completion, prepareCompletion, shapeCompletion } from './completion.ts'

/** The record of completions. */
export const completionTask: TextTaskRecord = {
  ...completion,
  ...textTask,
  family: 'completion',
  aliases: ['std/completions'],
  description: 'Continue a text with a language model of this server.',
  path: '/std/v1/completions',
  features: [...samplingFeatures, 'echo', 'suffix', 'best_of'],
  trial: 'infer run MODEL "Hello"',
  test: testOfStream({ prompt: 'The capital of France is', max_tokens: 32 }),
  sample: { prompt: sampleText, max_tokens: 32 },
  form: { panel: 'text', hidden: [], first: ['prompt'] },
  request: CompletionRequest,
  result: CompletionResponse,
  metering: textMetering,
  isRepeatable: isRepeatableSample,
  prepare: prepareCompletion,
  shape: (answers, answerFormat: CompletionAnswerFormat) => shapeCompletion(answers, answerFormat),
}
