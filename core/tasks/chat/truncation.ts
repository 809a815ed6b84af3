import { promptTokens } from '../../dialects/prompt-tokens.ts'
import type { Failure } from '../../failure.ts'

/** A part of a request's body that can be left out. */
interface Unit {
  /** Its first character in the body, and the one after its last. */
  start: number
  end: number
  /** Estimated tokens. */
  tokens: number
}

/** What may be left out of the body of a chat whose prompt is too long for the model. Plain data. */
export interface Droppable {
  /** Oldest first. */
  units: Unit[]
  /** Estimated tokens of the whole prompt. */
  tokens: number
  /** Tokens that the request asks for as its answer; null without a limit. */
  answerTokens: number | null
}

interface Message {
  role: string
  tool_calls?: readonly unknown[] | undefined
  function_call?: unknown
}

const isSystem = ({ role }: Message): boolean => role === 'system' || role === 'developer'
const isResult = ({ role }: Message): boolean => role === 'tool' || role === 'function'

/**
 * Returns the messages that can be left out together, oldest first, as lists of positions: whole turns, from one message
 * of the user to the next, because many chat templates refuse a conversation that begins with an answer. Of the last turn
 * only answers between the user's message and the last message; tool calls go together with their results. System messages
 * and the last message are never left out.
 */
export function droppableMessages(messages: readonly Message[]): number[][] {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  const groups: number[][] = []
  messages.forEach((message, at) => {
    if (isSystem(message) || at === lastUser) return
    const beginsGroup = at < lastUser ? message.role === 'user' : !isResult(message)
    if (beginsGroup || groups.length === 0) groups.push([at])
    else groups.at(-1)!.push(at)
  })
  return groups.filter(group => !group.includes(messages.length - 1))
}

/** Returns the body with its messages last, and what may be left out of it. */
export function droppableBody(
  { messages, ...rest }: Record<string, unknown> & { messages: readonly Message[] },
  answerTokens: number | null,
): { text: string; droppable: Droppable } {
  let text = `${JSON.stringify(rest).slice(0, -1)},"messages":[`
  const places = messages.map((message, at) => {
    const start = text.length
    text += JSON.stringify(message) + (at === messages.length - 1 ? ']}' : ',')
    return { start, end: text.length, tokens: promptTokens({ messages: [message] }) }
  })
  const units = droppableMessages(messages).flatMap(group => runsOf(group.map(at => places[at]!)))
  return { text, droppable: { units, tokens: promptTokens({ messages, tools: rest.tools }), answerTokens } }
}

/** A system message inside a turn stays, so the turn is left out in two parts. */
function runsOf(places: readonly Unit[]): Unit[] {
  const runs: Unit[] = []
  for (const place of places) {
    const last = runs.at(-1)
    if (last?.end === place.start) {
      last.end = place.end
      last.tokens += place.tokens
    } else runs.push({ ...place })
  }
  return runs
}

/** Returns the same for a body that has `added` more characters, from position `at` on. */
export const afterReplacement = (droppable: Droppable, at: number, added: number): Droppable => ({
  ...droppable,
  units: droppable.units.map(({ start, end, tokens }) => ({
    start: start > at ? start + added : start,
    end: end > at ? end + added : end,
    tokens,
  })),
})

/** After this many refusals all removable messages are removed. */
const maxAttempts = 5

/**
 * Returns a function that shortens the body after the engine has refused it as too long: each call removes more of the
 * oldest messages. It returns undefined if nothing more can be removed, or for another failure. The number removed is
 * computed from the token counts of the engine and leaves room for the answer; without counts it is half of the rest.
 */
export function shortener(body: string | Uint8Array, { units, tokens, answerTokens }: Droppable) {
  let attempts = 0
  let first = 0
  let left = tokens
  return ({ code, facts }: Failure): string | undefined => {
    if (code !== 'context_length_exceeded' || first >= units.length) return undefined
    const until = ++attempts >= maxAttempts ? -Infinity : left - surplusOf(facts)
    do left -= units[first++]!.tokens
    while (first < units.length && left > until)
    const text = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
    return without(text, units.slice(0, first))
  }

  /** Estimated tokens to leave out. */
  function surplusOf(facts: Failure['facts']): number {
    const { prompt_tokens: prompt, context_length: context } = facts ?? {}
    if (typeof prompt !== 'number' || typeof context !== 'number' || prompt <= 0)
      return units.slice(first).reduce((sum, unit) => sum + unit.tokens, 0) / 2
    const answer = Math.min(answerTokens ?? Infinity, Math.floor(context / 4))
    return left * (1 - (context - answer) / prompt)
  }
}

function without(text: string, units: readonly Unit[]): string {
  let kept = ''
  let from = 0
  for (const { start, end } of units) {
    kept += text.slice(from, start)
    from = end
  }
  return kept + text.slice(from)
}
