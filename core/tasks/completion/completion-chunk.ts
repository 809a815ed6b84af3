import type { ChoiceState, Piece } from '../chat/chat-chunk.ts'
import { completionLogprobs } from '../protocols/logprobs.ts'

/** A piece of a completion's choice, without its index and end. */
export function shapeCompletionText(choice: Record<string, unknown>, state: ChoiceState): Piece {
  const text = typeof choice.text === 'string' ? choice.text : ''
  const logprobs = completionLogprobs(choice.logprobs, state.length)
  state.begun = true
  state.length += text.length
  return { choice: { text, logprobs }, says: text !== '' || logprobs !== null }
}
