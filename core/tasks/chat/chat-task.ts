import { ChatRequest, ChatResponse } from '../../schemas/chat.ts'
import { tokens } from '../metering.ts'
import { isRepeatableSample } from '../sampling.ts'
import type { TextTaskRecord } from '../task.ts'
import { textInputs } from '../text-inputs.ts'
import { type ChatWant, chatCompletion, prepareChat, shapeChat } from './chat-completion.ts'

/** The record of `std/chat-completion`. */
export const chatTask: TextTaskRecord = {
  ...chatCompletion,
  ...textInputs,
  family: 'chat',
  runner: 'text',
  aliases: ['std/chat', 'std/chat-completions'],
  category: 'text',
  request: ChatRequest,
  otherFields: [
    'audio',
    'modalities',
    'moderation',
    'prediction',
    'prompt_cache_key',
    'prompt_cache_retention',
    'safety_identifier',
    'service_tier',
    'store',
    'verbosity',
    'web_search_options',
  ],
  result: ChatResponse,
  metering: tokens,
  isMediaPath: path => path.at(-1) === 'url' && path.at(-2) === 'image_url',
  isRepeatable: isRepeatableSample,
  prepare: prepareChat,
  shape: (answers, want: ChatWant) => shapeChat(answers[0]!, want),
}
