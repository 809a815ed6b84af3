import { ulid } from '../../ids.ts'
import { answerText, engineFault } from '../protocols/answer.ts'
import { chatLogprobs } from '../protocols/logprobs.ts'

/** The state of a streamed choice on which its next piece depends. */
export interface ChoiceState {
  begun: boolean
  ended: boolean
  /** Characters of text so far. */
  length: number
  /** Its tool calls in their order: the id of each, and the index that the engine gave it. */
  calls: BegunCall[]
}
interface BegunCall {
  id: string
  given: unknown
}
export const newChoice = (): ChoiceState => ({ begun: false, ended: false, length: 0, calls: [] })

/** A piece of a choice for the caller, and whether it has content. */
export interface ChunkPiece {
  choice: Record<string, unknown>
  says: boolean
}

interface Delta {
  role?: 'assistant'
  content?: string | null
  refusal?: string | null
  reasoning_content?: string
  tool_calls?: object[]
}

/**
 * Shapes a piece of a chat choice, without its index and finish reason: only the first delta has the role and
 * `refusal: null`, reasoning has one name, tool calls have an index, and at their beginning an id, a type and a name.
 * Throws Failure `worker_error`.
 */
export function shapeDelta(choice: Record<string, unknown>, state: ChoiceState): ChunkPiece {
  const sentMessage = (choice.delta ?? choice.message ?? {}) as Record<string, unknown>
  const delta: Delta = {}
  if (!state.begun) delta.role = 'assistant'
  const content = answerText(sentMessage.content)
  if (content) delta.content = content
  else if (!state.begun) delta.content = Array.isArray(sentMessage.tool_calls) ? null : ''
  if (typeof sentMessage.refusal === 'string' && sentMessage.refusal) delta.refusal = sentMessage.refusal
  else if (!state.begun) delta.refusal = null
  const reasoning = answerText(sentMessage.reasoning_content) ?? answerText(sentMessage.reasoning)
  if (reasoning) delta.reasoning_content = reasoning
  if (Array.isArray(sentMessage.tool_calls) && sentMessage.tool_calls.length > 0)
    delta.tool_calls = sentMessage.tool_calls.map(call => shapeCall(call, state.calls))
  state.begun = true
  const says = Boolean(content || delta.refusal || reasoning || delta.tool_calls)
  return { choice: { delta, logprobs: chatLogprobs(choice.logprobs) }, says }
}

/** `calls` has the tool calls so far; a new one is added to it. */
function shapeCall(value: unknown, calls: BegunCall[]): object {
  const call = (value ?? {}) as { index?: unknown; id?: unknown; function?: { name?: unknown; arguments?: unknown } }
  const id = typeof call.id === 'string' && call.id ? call.id : undefined
  const name = typeof call.function?.name === 'string' && call.function.name ? call.function.name : undefined
  const given = call.function?.arguments
  const part = given === undefined || given === null ? '' : typeof given === 'string' ? given : JSON.stringify(given)
  const begun = placeOf(call.index, id, name, calls)
  if (begun >= 0) return { index: begun, function: { arguments: part } }
  if (name === undefined) throw engineFault('a tool call without a name')
  const index = calls.length
  calls.push({ id: id ?? `call_${ulid()}`, given: call.index })
  return { index, id: calls[index]!.id, type: 'function', function: { name, arguments: part } }
}

/** Returns the index of the tool call that continues, or -1: some engines send no index, some send 0 for all calls. */
function placeOf(given: unknown, id: string | undefined, name: string | undefined, calls: BegunCall[]): number {
  const known = calls.findIndex(call => call.id === id)
  // Another id with a name is a new call.
  if (known >= 0 || (id !== undefined && name !== undefined)) return known
  if (typeof given === 'number') return calls.findLastIndex(call => call.given === given)
  // Without an index, a name means a new call.
  return name === undefined ? calls.length - 1 : -1
}
