import { presentMembers } from '../../members.ts'
import { ChatRequest, ChatResponse } from '../../schemas/chat.ts'
import { textMetering } from '../metering.ts'
import { firstOf, type TaskPrediction } from '../prediction.ts'
import { isRepeatableSample, samplingFeatures } from '../sampling.ts'
import type { TextTaskRecord } from '../task.ts'
import { sampleText, testOfStream } from '../task-test.ts'
import { textTask } from '../text-task.ts'
import { type ChatAnswerFormat, chatCompletion, prepareChat, shapeChat } from './chat-completion.ts'

const stopsOf = (stop: unknown): unknown => (typeof stop === 'string' ? stop.split(',').filter(Boolean) : stop)

/** Predictions that are answered by a chat completion: the output is its text, in a list. */
const chatPrediction: TaskPrediction = {
  media: [],
  request(input) {
    const { prompt, system_prompt, messages } = input
    const system = typeof system_prompt === 'string' && system_prompt !== ''
    return presentMembers({
      messages: messages ?? [
        ...(system ? [{ role: 'system', content: system_prompt }] : []),
        { role: 'user', content: prompt ?? '' },
      ],
      max_completion_tokens: firstOf(input, 'max_tokens', 'max_new_tokens', 'max_completion_tokens'),
      temperature: input.temperature,
      top_p: input.top_p,
      top_k: input.top_k,
      seed: input.seed,
      presence_penalty: input.presence_penalty,
      frequency_penalty: input.frequency_penalty,
      stop: stopsOf(firstOf(input, 'stop', 'stop_sequences')),
    })
  },
  output: result => [(result as ChatResponse).choices[0]?.message.content ?? ''],
}

/** The record of chat completions. */
export const chatTask: TextTaskRecord = {
  ...chatCompletion,
  ...textTask,
  family: 'chat',
  aliases: ['std/chat', 'std/chat-completions'],
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
  result: ChatResponse,
  metering: textMetering,
  isMediaPath: path => path.at(-1) === 'url' && path.at(-2) === 'image_url',
  isRepeatable: isRepeatableSample,
  prediction: chatPrediction,
  prepare: prepareChat,
  shape: (answers, answerFormat: ChatAnswerFormat) => shapeChat(answers[0]!, answerFormat),
}
