import type { Failure } from '../../core/failure.ts'
import { errorInBody, serverRefusal } from '../client/refusal.ts'
import type { SseEvent } from '../client/sse.ts'
import { refused } from '../terminal/exit-codes.ts'

/** One part of a streamed answer: text of the answer, text of its reasoning, or how it ended. */
export type AnswerPart =
  | { kind: 'text' | 'reasoning'; text: string }
  | { kind: 'end'; finishReason: string; tokens: { input: number; output: number } | undefined }

interface Chunk {
  choices?: { delta?: { content?: unknown; reasoning_content?: unknown }; finish_reason?: unknown }[]
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } | null
}

/**
 * Reads the parts of a chat answer from its event stream. Ends with exactly one `end`.
 * Throws the Failure that the server put into the stream, or `worker_error` when the stream stops without `[DONE]`.
 */
export async function* readAnswer(
  url: string,
  events: AsyncIterable<SseEvent>,
): AsyncGenerator<AnswerPart, void, void> {
  let finishReason = 'stop'
  let tokens: { input: number; output: number } | undefined
  for await (const { data } of events) {
    if (data === '[DONE]') {
      yield { kind: 'end', finishReason, tokens }
      return
    }
    if (errorInBody(data)) throw serverRefusal(url, data)
    const chunk = parse(data)
    const choice = chunk.choices?.[0]
    const { content, reasoning_content: reasoning } = choice?.delta ?? {}
    if (typeof reasoning === 'string' && reasoning !== '') yield { kind: 'reasoning', text: reasoning }
    if (typeof content === 'string' && content !== '') yield { kind: 'text', text: content }
    if (typeof choice?.finish_reason === 'string') finishReason = choice.finish_reason
    const { prompt_tokens: input, completion_tokens: output } = chunk.usage ?? {}
    if (typeof input === 'number' && typeof output === 'number') tokens = { input, output }
  }
  throw broken('The answer ended too early. Ask again.')
}

function parse(data: string): Chunk {
  try {
    const value: unknown = JSON.parse(data)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // The error below is the same as for a value that is not an object.
  }
  throw broken('The server sent an event that is not a JSON object, so the answer was stopped. Ask again.')
}

const broken = (message: string): Failure => refused('worker_error', message)
