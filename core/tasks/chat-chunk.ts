import { ulid } from '../ids.ts'
import { engineFault, textOf } from './answer.ts'
import { chatLogprobs } from './logprobs.ts'

/** What was said of a choice so far, as far as its next piece depends on it. */
export interface ChoiceState {
  begun: boolean
  ended: boolean
  /** Characters of text so far. */
  length: number
  /** The ids of its tool calls, in their order. */
  calls: string[]
}
export const newChoice = (): ChoiceState => ({ begun: false, ended: false, length: 0, calls: [] })

/** A piece of a choice in the caller's words, and whether it says anything. */
export interface Piece {
  choice: Record<string, unknown>
  says: boolean
}

interface Delta {
  role?: 'assistant'
  content?: string | null
  refusal?: string
  reasoning_content?: string
  tool_calls?: object[]
}

/**
 * A piece of a chat choice, without its index and end: the role stands in the first delta and in no other, reasoning has
 * one name, tool calls have an index, and an id, a type and a name when they begin. Throws Failure `worker_error`.
 */
export function shapeDelta(choice: Record<string, unknown>, state: ChoiceState): Piece {
  const said = (choice.delta ?? choice.message ?? {}) as Record<string, unknown>
  const delta: Delta = {}
  if (!state.begun) delta.role = 'assistant'
  const content = textOf(said.content)
  if (content) delta.content = content
  else if (!state.begun) delta.content = Array.isArray(said.tool_calls) ? null : ''
  if (typeof said.refusal === 'string' && said.refusal) delta.refusal = said.refusal
  const reasoning = textOf(said.reasoning_content) ?? textOf(said.reasoning)
  if (reasoning) delta.reasoning_content = reasoning
  if (Array.isArray(said.tool_calls) && said.tool_calls.length > 0)
    delta.tool_calls = said.tool_calls.map(call => shapeCall(call, state.calls))
  state.begun = true
  const says = Boolean(content || delta.refusal || reasoning || delta.tool_calls)
  return { choice: { delta, logprobs: chatLogprobs(choice.logprobs) }, says }
}

/** `calls` holds the ids of those begun and gets the id of one that begins. */
function shapeCall(value: unknown, calls: string[]): object {
  const call = (value ?? {}) as { index?: unknown; id?: unknown; function?: { name?: unknown; arguments?: unknown } }
  const id = typeof call.id === 'string' && call.id ? call.id : undefined
  const name = typeof call.function?.name === 'string' && call.function.name ? call.function.name : undefined
  const given = call.function?.arguments
  const part = given === undefined || given === null ? '' : typeof given === 'string' ? given : JSON.stringify(given)
  const index = placeOf(call.index, id, name, calls)
  if (index < calls.length) return { index, function: { arguments: part } }
  if (name === undefined) throw engineFault('a tool call without a name')
  calls.push(id ?? `call_${ulid()}`)
  return { index, id: calls[index], type: 'function', function: { name, arguments: part } }
}

/** Which call is meant: some engines leave the index out, some give 0 to each of several calls. */
function placeOf(given: unknown, id: string | undefined, name: string | undefined, calls: string[]): number {
  const known = id === undefined ? -1 : calls.indexOf(id)
  if (known >= 0) return known
  if (typeof given === 'number' && Number.isInteger(given) && given >= 0 && given < calls.length && id === undefined)
    return given
  // Another id is another call, and so is another name where there are no ids.
  if (id !== undefined || name !== undefined || calls.length === 0) return calls.length
  return calls.length - 1
}
