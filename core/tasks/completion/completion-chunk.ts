import type { ChoiceState, ChunkPiece } from '../chat/chat-chunk.ts'
import { completionLogprobs } from '../protocols/logprobs.ts'

/** Shapes a piece of a completion choice, without its index and finish reason. */
export function shapeCompletionText(choice: Record<string, unknown>, state: ChoiceState): ChunkPiece {
  const text = typeof choice.text === 'string' ? choice.text : ''
  const logprobs = completionLogprobs(choice.logprobs, state.length)
  state.begun = true
  state.length += text.length
  return { choice: { text, logprobs }, says: text !== '' || logprobs !== null }
}
