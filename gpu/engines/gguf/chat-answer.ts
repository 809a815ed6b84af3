import type { ChatResponse } from '../../../core/schemas/chat.ts'

export type FinishReason = 'stop' | 'length'
export interface ChatUsage {
  promptTokens: number
  completionTokens: number
  cachedTokens: number
}

/** What all parts of one answer have in common. */
export interface AnswerHead {
  id: string
  /** Seconds. */
  created: number
  model: string
  fingerprint: string
}

const usageOf = ({ promptTokens, completionTokens, cachedTokens }: ChatUsage) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})

/** An answer in one piece. Source: OpenAI's CreateChatCompletionResponse. */
export const wholeAnswer = (head: AnswerHead, text: string, reason: FinishReason, usage: ChatUsage): ChatResponse => ({
  id: head.id,
  object: 'chat.completion',
  created: head.created,
  model: head.model,
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: text, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: reason,
    },
  ],
  usage: usageOf(usage),
  service_tier: 'default',
  system_fingerprint: head.fingerprint,
})

/**
 * The frames of a streamed answer. What is the same in all of them is written down once, because a frame is made for
 * every token. Source: OpenAI's CreateChatCompletionStreamResponse.
 */
export function streamFrames(head: AnswerHead, includeUsage: boolean) {
  const common = JSON.stringify({
    id: head.id,
    object: 'chat.completion.chunk',
    created: head.created,
    model: head.model,
    service_tier: 'default',
    system_fingerprint: head.fingerprint,
  }).slice(0, -1)
  const frame = (delta: string, reason: string) =>
    `data: ${common},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${reason}}]${includeUsage ? ',"usage":null' : ''}}\n\n`
  return {
    first: () => frame('{"role":"assistant","content":"","refusal":null}', 'null'),
    text: (text: string) => frame(`{"content":${JSON.stringify(text)}}`, 'null'),
    /** The end of the answer, its usage where that was asked for, and the mark that nothing follows. */
    last: (reason: FinishReason, usage: ChatUsage) =>
      frame('{}', `"${reason}"`) +
      (includeUsage ? `data: ${common},"choices":[],"usage":${JSON.stringify(usageOf(usage))}}\n\n` : '') +
      'data: [DONE]\n\n',
  }
}
