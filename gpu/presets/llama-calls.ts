import type { EngineCall, EngineListener } from '../../core/models/fleet.ts'
import { messageOf } from '../engines/gguf/chat-answer.ts'
import { hermes } from '../engines/gguf/tools/call-form.ts'
import { type AnswerEvent, openCallParser } from '../engines/gguf/tools/call-parser.ts'

// oxlint-disable-next-line no-explicit-any
type Json = any

/** Parses tool calls from the text of whole or streamed answers, and passes the answers on in OpenAI's form. */
export function callListener(
  names: readonly string[],
  { stream }: Pick<EngineCall, 'stream'>,
  listener: EngineListener,
  newCallId: () => string,
): EngineListener {
  const pieces: Buffer[] = []
  const frames = stream ? openFrames(names, newCallId) : undefined
  return {
    accepted: type => listener.accepted(type),
    failed: failure => listener.failed(failure),
    chunk(bytes) {
      if (!frames) return void pieces.push(bytes)
      const out = frames.push(bytes)
      if (out !== '') listener.chunk(Buffer.from(out))
    },
    finished() {
      if (!frames) listener.chunk(Buffer.from(whole(Buffer.concat(pieces).toString('utf8'), names, newCallId)))
      else {
        const out = frames.end()
        if (out !== '') listener.chunk(Buffer.from(out))
      }
      listener.finished()
    },
  }
}

/** Converts a whole answer. An answer that is not JSON is passed on unchanged; the reader of the answer reports it. */
function whole(text: string, names: readonly string[], newCallId: () => string): string {
  let answer: Json
  try {
    answer = JSON.parse(text)
  } catch {
    return text
  }
  for (const choice of Array.isArray(answer?.choices) ? answer.choices : []) {
    const content = choice?.message?.content
    if (typeof content !== 'string') continue
    const parser = openCallParser(hermes, names)
    const events: AnswerEvent[] = [...parser.push(content), ...parser.end()]
    choice.message = { ...choice.message, ...messageOf(events, newCallId) }
    if (choice.finish_reason === 'stop' && parser.calls > 0) choice.finish_reason = 'tool_calls'
  }
  return JSON.stringify(answer)
}

/** Converts the events of a stream, one per `data:` line. */
function openFrames(names: readonly string[], newCallId: () => string) {
  const decoder = new TextDecoder()
  const choices = new Map<number, ReturnType<typeof openChoice>>()
  let rest = ''

  function line(text: string): string {
    if (!text.startsWith('data:') || text.startsWith('data: [DONE]')) return `${text}\n`
    let event: Json
    try {
      event = JSON.parse(text.slice(5))
    } catch {
      return `${text}\n`
    }
    if (!Array.isArray(event?.choices)) return `${text}\n`
    const { usage, timings, ...head } = event
    const parsedChoices = event.choices.flatMap((choice: Json) => {
      const index = choice?.index ?? 0
      if (!choices.has(index)) choices.set(index, openChoice(names, newCallId))
      return choices.get(index)!(choice)
    })
    // One event for each part: clients expect each choice only once in an event.
    const events = parsedChoices.slice(0, -1).map((choice: Json) => ({ ...head, choices: [choice] }))
    events.push({ ...head, choices: parsedChoices.slice(-1), usage, timings })
    return `${events.map((one: Json) => `data: ${JSON.stringify(one)}`).join('\n\n')}\n`
  }

  return {
    push(bytes: Buffer): string {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop()!
      return lines.map(line).join('')
    },
    end: (): string => (rest === '' ? '' : line(rest)),
  }
}

/** Converts the deltas of one choice: text becomes text and tool calls; with calls, `finish_reason` is `tool_calls`. */
function openChoice(names: readonly string[], newCallId: () => string) {
  const parser = openCallParser(hermes, names)
  let calls = 0

  function deltaOf(event: AnswerEvent): Json {
    if (event.kind === 'content') return { content: event.text }
    if (event.kind === 'reasoning') return { reasoning_content: event.text }
    const call =
      event.kind === 'arguments'
        ? { index: calls - 1, function: { arguments: event.text } }
        : { index: calls++, id: newCallId(), type: 'function', function: { name: event.name, arguments: '' } }
    return { tool_calls: [call] }
  }

  return (choice: Json): Json[] => {
    const { content, ...others } = choice.delta ?? {}
    const ended = choice.finish_reason != null
    const events = [...(typeof content === 'string' ? parser.push(content) : []), ...(ended ? parser.end() : [])]
    const parsedChoices = events.map(event => ({
      index: choice.index ?? 0,
      delta: deltaOf(event),
      finish_reason: null,
    }))
    const reason = choice.finish_reason === 'stop' && parser.calls > 0 ? 'tool_calls' : (choice.finish_reason ?? null)
    const first = { ...choice, delta: others, finish_reason: null }
    const last = { index: choice.index ?? 0, delta: {}, finish_reason: reason }
    const opening =
      Object.keys(others).length > 0 || choice.logprobs != null || (!ended && parsedChoices.length === 0) ? [first] : []
    return [...opening, ...parsedChoices, ...(ended ? [last] : [])]
  }
}
