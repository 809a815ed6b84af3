import { ChatRequest, ChatResponse } from '../../schemas/chat.ts'
import { textMetering } from '../metering.ts'
import { isRepeatableSample, samplingFeatures } from '../sampling.ts'
import type { TextTaskRecord } from '../task.ts'
import { sampleText, testOfStream } from '../task-test.ts'
import { textInputs } from '../text-inputs.ts'
import { type ChatAnswerFormat, chatCompletion, prepareChat, shapeChat } from './chat-completion.ts'
import { chatPrediction } from './chat-prediction.ts'

/** The record of chat completions. */
export const chatTask: TextTaskRecord = {
  ...chatCompletion,
  ...textInputs,
  family: 'chat',
  runner: 'text',
  aliases: ['std/chat', 'std/chat-completions'],
  category: 'text',
  description: 'Ask a chat model of this server. Returns its answer to the messages.',
  path: '/std/v1/chat/completions',
  features: [
    ...samplingFeatures,
    ...(['tools', 'json_object', 'json_schema', 'images', 'audio', 'files', 'chat_template_kwargs'] as const),
  ],
  trial: 'infer run MODEL "Hello"',
  test: testOfStream({ messages: [{ role: 'user', content: sampleText }], max_tokens: 64 }),
  sample: { messages: [{ role: 'user', content: sampleText }], max_tokens: 64 },
  form: { panel: 'conversation', hidden: [], first: [] },
  request: ChatRequest,
  otherFields: {
    audio: null,
    modalities: null,
    moderation: null,
    prediction: null,
    prompt_cache_key: null,
    prompt_cache_retention: null,
    safety_identifier: null,
    service_tier: null,
    store: null,
    verbosity: null,
    web_search_options: null,
  },
  modelFaults: () => [],
  result: ChatResponse,
  metering: textMetering,
  isMediaPath: path => path.at(-1) === 'url' && path.at(-2) === 'image_url',
  isRepeatable: isRepeatableSample,
  prediction: chatPrediction,
  prepare: prepareChat,
  shape: (answers, answerFormat: ChatAnswerFormat) => shapeChat(answers[0]!, answerFormat),
}
