import type { CompletionResponse } from '../../../core/schemas/completion.ts'
import { type AnswerHead, type GenerationUsage, lastFrames, progressFrame, usageOf } from './chat-answer.ts'
import type { GenerationEnd, PromptToken } from './generate.ts'

type Logprobs = NonNullable<CompletionResponse['choices'][number]['logprobs']>

/**
 * Converts tokens to the legacy format, whose offsets continue from piece to piece. `droppedSpace`: whether the
 * tokenizer added a space before the first word that is not in the text. Source: OpenAI's CreateCompletionResponse.
 */
export function openTokenLists(droppedSpace: boolean) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let offset = 0
  let atStart = droppedSpace
  return {
    /** Counts text that has no tokens in the list. */
    skip(text: string): void {
      offset += text.length
      atStart = false
    },
    lists(tokens: readonly PromptToken[], top: number): Logprobs {
      const at: number[] = []
      for (const { bytes } of tokens) {
        at.push(offset)
        const text = decoder.decode(Uint8Array.from(bytes), { stream: true })
        offset += atStart && text.startsWith(' ') ? text.length - 1 : text.length
        atStart = false
      }
      return {
        tokens: tokens.map(({ token }) => token),
        token_logprobs: tokens.map(({ logprob }) => logprob),
        top_logprobs: top === 0 ? null : tokens.map(topOf),
        text_offset: at,
      }
    },
  }
}

/** The most likely tokens by text; of two with the same text, the more likely. Always includes the sampled token. */
function topOf({ token, logprob, top_logprobs }: PromptToken): Record<string, number> | null {
  if (logprob === null) return null
  const top: Record<string, number> = {}
  for (const likely of [...top_logprobs, { token, logprob }]) top[likely.token] ??= likely.logprob
  return top
}

export interface CompletionChoice {
  text: string
  logprobs: Logprobs | null
  reason: GenerationEnd
}

export const wholeCompletion = (
  head: AnswerHead,
  choices: readonly CompletionChoice[],
  counts: GenerationUsage,
): CompletionResponse => ({
  ...head,
  object: 'text_completion',
  choices: choices.map(({ text, logprobs, reason }, index) => ({ text, index, logprobs, finish_reason: reason })),
  usage: usageOf(counts),
})

/** Builds the frames of a streamed completion. Common parts are serialized once. */
export function completionFrames(head: AnswerHead, includeUsage: boolean) {
  const common = JSON.stringify({ ...head, object: 'text_completion' }).slice(0, -1)
  const rest = includeUsage ? ',"usage":null}\n\n' : '}\n\n'
  return {
    progress: (promptTokens: number): string => progressFrame(common, promptTokens),
    piece: (index: number, text: string, logprobs: Logprobs | null, reason: GenerationEnd | null): string =>
      `data: ${common},"choices":[{"index":${index},"text":${JSON.stringify(text)},"logprobs":${JSON.stringify(logprobs)},"finish_reason":${JSON.stringify(reason)}}]${rest}`,
    last: (counts: GenerationUsage): string => lastFrames(common, includeUsage, counts),
  }
}

export const joinLogprobs = (a: Logprobs | null, b: Logprobs | null): Logprobs | null =>
  a && b
    ? {
        tokens: [...a.tokens, ...b.tokens],
        token_logprobs: [...a.token_logprobs, ...b.token_logprobs],
        top_logprobs: a.top_logprobs && b.top_logprobs && [...a.top_logprobs, ...b.top_logprobs],
        text_offset: [...a.text_offset, ...b.text_offset],
      }
    : (a ?? b)
