import type { Failure } from '../../core/failure.ts'
import { refused } from '../exit-codes.ts'
import { errorOf, refusal } from '../refusal.ts'
import type { SseEvent } from '../sse.ts'

/** One thing that a streamed answer says: words of the answer, words of its reasoning, or how it ended. */
export type Piece =
  | { kind: 'text' | 'reasoning'; text: string }
  | { kind: 'end'; finishReason: string; tokens: { input: number; output: number } | undefined }

interface Chunk {
  choices?: { delta?: { content?: unknown; reasoning_content?: unknown }; finish_reason?: unknown }[]
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } | null
}

/**
 * The pieces of a chat answer, from its stream of events. Ends with exactly one `end`.
 * Throws the Failure that the server put into the stream, or `worker_error` when the stream stops without `[DONE]`.
 */
export async function* readAnswer(url: string, events: AsyncIterable<SseEvent>): AsyncGenerator<Piece, void, void> {
  let finishReason = 'stop'
  let tokens: { input: number; output: number } | undefined
  for await (const { data } of events) {
    if (data === '[DONE]') {
      yield { kind: 'end', finishReason, tokens }
      return
    }
    if (errorOf(data)) throw refusal(url, data)
    const chunk = parse(data)
    const choice = chunk.choices?.[0]
    const { content, reasoning_content: reasoning } = choice?.delta ?? {}
    if (typeof reasoning === 'string' && reasoning !== '') yield { kind: 'reasoning', text: reasoning }
    if (typeof content === 'string' && content !== '') yield { kind: 'text', text: content }
    if (typeof choice?.finish_reason === 'string') finishReason = choice.finish_reason
    const { prompt_tokens: input, completion_tokens: output } = chunk.usage ?? {}
    if (typeof input === 'number' && typeof output === 'number') tokens = { input, output }
  }
  throw broken('The answer broke off before its end. Ask again.')
}

function parse(data: string): Chunk {
  try {
    const value: unknown = JSON.parse(data)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Said below, in the same words as for a value that is no object.
  }
  throw broken('The server sent an event that is no JSON; the answer was given up.')
}

const broken = (message: string): Failure => refused('worker_error', message)
