import { randomBytes } from 'node:crypto'
import { ulid } from '../../../core/ids.ts'
import type { ChatResponse } from '../../../core/schemas/chat.ts'
import type { TokenLogprob } from './logprobs.ts'
import type { AnswerEvent, ToolCallEvent } from './tools/call-parser.ts'

/**
 * llama.cpp's `return_progress`: a stream starts with its prompt length, so that the usage of a disconnected request is
 * known. The gateway sets it, not API clients.
 */
export const asksProgress = (body: unknown): boolean => (body as { return_progress?: unknown }).return_progress === true

/** The event with the prompt length; `head` is the start of every event of the stream, with an open brace. */
export const progressFrame = (head: string, promptTokens: number): string =>
  `data: ${head},"choices":[],"prompt_progress":{"total":${promptTokens}}}\n\n`

export type FinishReason = 'stop' | 'length' | 'tool_calls'
export interface GenerationUsage {
  promptTokens: number
  completionTokens: number
  cachedTokens: number
  reasoningTokens?: number
}

/** The fields that all parts of an answer have. `kind` begins its id, as OpenAI's ids do. */
export const answerHead = (kind: string, { id, fingerprint }: { id: string; fingerprint: string }) => ({
  id: `${kind}-${ulid()}`,
  /** Seconds. */
  created: Math.floor(Date.now() / 1000),
  model: id,
  system_fingerprint: fingerprint,
})

export type AnswerHead = ReturnType<typeof answerHead>

/** The last frames of a stream: the usage, if it was requested, and the end marker. */
export const lastFrames = (head: string, includeUsage: boolean, counts: GenerationUsage): string =>
  `${includeUsage ? `data: ${head},"choices":[],"usage":${JSON.stringify(usageOf(counts))}}\n\n` : ''}data: [DONE]\n\n`

export const usageOf = ({ promptTokens, completionTokens, cachedTokens, reasoningTokens = 0 }: GenerationUsage) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: reasoningTokens,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})

/** A new tool call id. Mistral models accept only nine letters and digits. */
export const toolCallId = (family: string): string =>
  family.startsWith('mistral') ? randomBytes(5).toString('hex').slice(0, 9) : `call_${ulid()}`

export interface ChatChoice {
  events: AnswerEvent[]
  tokens: TokenLogprob[]
  reason: FinishReason
}

type Message = ChatResponse['choices'][number]['message']

/** A complete response. Source: OpenAI's CreateChatCompletionResponse. */
export const wholeAnswer = (
  head: AnswerHead,
  choices: readonly ChatChoice[],
  newCallId: () => string,
  usage: GenerationUsage,
  logprobs: boolean,
): ChatResponse => ({
  ...head,
  object: 'chat.completion',
  choices: choices.map(({ events, tokens, reason }, index) => ({
    index,
    message: messageOf(events, newCallId),
    logprobs: logprobs ? { content: tokens, refusal: null } : null,
    finish_reason: reason,
  })),
  usage: usageOf(usage),
  service_tier: 'default',
})

/** Returns the parts of tool calls as streams have them: the name of a call, then its arguments in pieces. */
export function openToolCallParts(newCallId: () => string) {
  let calls = 0
  return (event: ToolCallEvent) =>
    event.kind === 'arguments'
      ? { index: calls - 1, function: { arguments: event.text } }
      : { index: calls++, id: newCallId(), type: 'function', function: { name: event.name, arguments: '' } }
}

export function messageOf(events: readonly AnswerEvent[], newCallId: () => string): Message {
  const calls: NonNullable<Message['tool_calls']> = []
  let content = ''
  let reasoning = ''
  for (const event of events) {
    if (event.kind === 'content') content += event.text
    else if (event.kind === 'reasoning') reasoning += event.text
    else if (event.kind === 'arguments') calls.at(-1)!.function.arguments += event.text
    else calls.push({ id: newCallId(), type: 'function', function: { name: event.name, arguments: '' } })
  }
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    refusal: null,
    annotations: [],
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
}

/**
 * Builds the frames of a streamed response. Common parts are serialized once, because every token needs a frame.
 * Source: OpenAI's CreateChatCompletionStreamResponse.
 */
export function streamFrames(head: AnswerHead, newCallId: () => string, includeUsage: boolean) {
  const common = JSON.stringify({ ...head, object: 'chat.completion.chunk', service_tier: 'default' }).slice(0, -1)
  const usage = includeUsage ? ',"usage":null' : ''
  const frame = (index: number, delta: string, tokens: readonly TokenLogprob[], reason: string) => {
    const logprobs = tokens.length > 0 ? JSON.stringify({ content: tokens, refusal: null }) : 'null'
    return `data: ${common},"choices":[{"index":${index},"delta":${delta},"logprobs":${logprobs},"finish_reason":${reason}}]${usage}}\n\n`
  }

  return {
    /** The prompt length, sent first: a client may disconnect before the usage frame. */
    progress: (promptTokens: number): string => progressFrame(common, promptTokens),
    /** The frames of one choice; the first contains the role. */
    choice(index: number) {
      let begun = false
      const callPart = openToolCallParts(newCallId)
      /** Log probabilities are sent with the next frame, because a token may not produce text yet. */
      let waiting: TokenLogprob[] = []
      const begin = (): string => {
        if (begun) return ''
        begun = true
        return frame(index, '{"role":"assistant","content":"","refusal":null}', [], 'null')
      }
      const deltaFrame = (delta: string): string => {
        const tokens = waiting
        waiting = []
        return frame(index, delta, tokens, 'null')
      }
      const framesFor = (event: AnswerEvent): string => {
        if (event.kind === 'content') return begin() + deltaFrame(`{"content":${JSON.stringify(event.text)}}`)
        if (event.kind === 'reasoning')
          return begin() + deltaFrame(`{"reasoning_content":${JSON.stringify(event.text)}}`)
        // Clients concatenate the contents, so `null` is sent only if there was no content at all.
        const opening = begun ? '' : '"role":"assistant","content":null,"refusal":null,'
        begun = true
        return deltaFrame(`{${opening}"tool_calls":[${JSON.stringify(callPart(event))}]}`)
      }
      return {
        /** Frames for new events. With `sendRole` the first frame is sent even without text. */
        more(events: readonly AnswerEvent[], tokens: readonly TokenLogprob[], sendRole: boolean): string {
          waiting.push(...tokens)
          return (sendRole ? begin() : '') + events.map(framesFor).join('')
        },
        end: (reason: FinishReason): string => begin() + frame(index, '{}', waiting, `"${reason}"`),
      }
    },
    last: (counts: GenerationUsage): string => lastFrames(common, includeUsage, counts),
  }
}
