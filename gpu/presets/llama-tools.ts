import { randomUUID } from 'node:crypto'
import { ignoredText } from '../../core/ignored.ts'
import { jsonOf } from '../../core/json.ts'
import type { EngineCall, EngineListener } from '../../core/models/engine-call.ts'
import type { ChatRequest } from '../../core/schemas/chat.ts'
import { messageOf, openToolCallParts, toolCallId } from '../engines/gguf/chat-answer.ts'
import { openConstraints } from '../engines/gguf/chat-constraint.ts'
import { hermes, toolCallingOf } from '../engines/gguf/tools/call-form.ts'
import { type AnswerEvent, openToolCallParser } from '../engines/gguf/tools/call-parser.ts'
import {
  inProse,
  introduced,
  type Message,
  toolIntroduction,
  withoutFunctions,
} from '../engines/gguf/tools/conversation.ts'
import { bodyText, type Converter } from './preset.ts'

const path = '/v1/chat/completions'

/** The used fields of llama-server's /props. Source: tried with v0.5.0. */
interface Props {
  chat_template_caps?: { supports_tools?: boolean; supports_tool_calls?: boolean; supports_system_role?: boolean }
}

/**
 * Returns the converter of a llama-server by its answer at /props; undefined when its chat template supports tools.
 * Without that it would answer every request with plain text, also with `tool_choice: required`. The converter describes
 * the tools in the prompt, constrains the answer with a grammar and parses the calls from the text, as the built-in
 * engine does.
 */
export function toolConverter(props: unknown): Converter | undefined {
  const caps = (props as Props | null)?.chat_template_caps
  if (caps?.supports_tools !== false) return undefined
  const constraintOf = openConstraints()
  const hasSystem = caps.supports_system_role !== false

  return (call, listener) => {
    const text = call.path === path ? bodyText(call.body) : undefined
    if (text === undefined || !/"(tools|tool_calls|tool_call_id)"/.test(text)) return undefined
    const body = JSON.parse(text) as Record<string, unknown>
    return converted(body).then(({ body, names, leftOut }) => ({
      call: { ...call, body } satisfies EngineCall,
      listener: names === undefined ? listener : callListener(names, call, listener, leftOut),
    }))
  }

  interface Converted {
    body: string
    /** The functions that the answer may call; undefined without any. */
    names?: string[]
    /** What the grammar leaves out of the schemas of the tools. */
    leftOut: readonly string[]
  }

  async function converted(sent: Record<string, unknown>): Promise<Converted> {
    const { tools: _tools, tool_choice: _choice, parallel_tool_calls: _parallel, ...rest } = sent
    // The request was validated before; its model name is the upstream name.
    const request = sent as unknown as ChatRequest
    const calling = toolCallingOf(request, hermes)
    const media = openMediaParts()
    const plainMessages = inProse(
      request.messages.map(message => withoutFunctions({ ...message, content: media.taken(message.content) })),
    )
    if (!calling) return { body: JSON.stringify({ ...rest, messages: plainMessages.map(media.restored) }), leftOut: [] }
    const format = request.response_format
    const constraint = await constraintOf({ calling, format, marks: undefined, beginning: 'answer' })
    const tools = calling.tools.map(({ tool }) => tool)
    const text = toolIntroduction(tools, calling.forced, calling.parallel)
    const messages = introduced(plainMessages, text, hasSystem).map(media.restored)
    const body: Record<string, unknown> = { ...rest, messages, grammar: constraint?.grammar }
    delete body.response_format
    // An answer that must be a call contains no text for a stop string.
    if (calling.forced) delete body.stop
    const names = tools.map(tool => tool.function.name)
    return { body: JSON.stringify(body), names, leftOut: constraint?.leftOut ?? [] }
  }
}

// oxlint-disable-next-line no-explicit-any
type Json = any

const newCallId = () => toolCallId(hermes.family)

/** Parses tool calls from the text of whole or streamed answers, and passes the answers on in OpenAI's form. */
function callListener(
  names: readonly string[],
  { stream }: Pick<EngineCall, 'stream'>,
  listener: EngineListener,
  leftOut: readonly string[],
): EngineListener {
  const pieces: Buffer[] = []
  const frames = stream ? openFrames(names) : undefined
  const pass = (text: string) => void (text === '' || listener.chunk(Buffer.from(text)))
  return {
    accepted: type => listener.accepted(type, ignoredText(leftOut) || undefined),
    failed: failure => listener.failed(failure),
    chunk(bytes) {
      if (frames) pass(frames.push(bytes))
      else pieces.push(bytes)
    },
    finished() {
      pass(frames ? frames.end() : whole(Buffer.concat(pieces).toString('utf8'), names))
      listener.finished()
    },
  }
}

/** Converts a whole answer. An answer that is not JSON is passed on unchanged; the reader of the answer reports it. */
function whole(text: string, names: readonly string[]): string {
  const answer = jsonOf(text) as Json
  if (answer === undefined) return text
  for (const choice of Array.isArray(answer?.choices) ? answer.choices : []) {
    const content = choice?.message?.content
    if (typeof content !== 'string') continue
    const parser = openToolCallParser(hermes, names)
    const events: AnswerEvent[] = [...parser.push(content), ...parser.end(choice.finish_reason === 'length')]
    choice.message = { ...choice.message, ...messageOf(events, newCallId) }
    if (choice.finish_reason === 'stop' && parser.calls > 0) choice.finish_reason = 'tool_calls'
  }
  return JSON.stringify(answer)
}

/** Converts the events of a stream, one per `data:` line. */
function openFrames(names: readonly string[]) {
  const decoder = new TextDecoder()
  const choices = new Map<number, ReturnType<typeof openChoice>>()
  let rest = ''

  function line(text: string): string {
    if (!text.startsWith('data:') || text.startsWith('data: [DONE]')) return `${text}\n`
    const event = jsonOf(text.slice(5)) as Json
    if (!Array.isArray(event?.choices)) return `${text}\n`
    const { usage, timings, ...head } = event
    const parsedChoices = event.choices.flatMap((choice: Json) => {
      const index = choice?.index ?? 0
      const read = choices.get(index) ?? openChoice(names)
      choices.set(index, read)
      return read(choice)
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
function openChoice(names: readonly string[]) {
  const parser = openToolCallParser(hermes, names)
  const callPart = openToolCallParts(newCallId)

  function deltaOf(event: AnswerEvent): Json {
    if (event.kind === 'content') return { content: event.text }
    if (event.kind === 'reasoning') return { reasoning_content: event.text }
    return { tool_calls: [callPart(event)] }
  }

  return (choice: Json): Json[] => {
    const { content, ...others } = choice.delta ?? {}
    const ended = choice.finish_reason != null
    const events = [
      ...(typeof content === 'string' ? parser.push(content) : []),
      ...(ended ? parser.end(choice.finish_reason === 'length') : []),
    ]
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

type Content = ChatRequest['messages'][number]['content']
type Part = Exclude<Content, string | null | undefined>[number]

/** A message as an engine gets it: its content is one text, or a list of texts, images and audio. */
export type MessageWithMedia = Omit<Message, 'content'> & { content: string | null | Part[] }

/**
 * Replaces the images and audio in the messages of one request by marks, so that the messages can be changed as text,
 * and restores them afterwards. The marks are random, so that no sender can guess them.
 */
function openMediaParts() {
  const kept: Part[] = []
  const mark = randomUUID()
  const marks = new RegExp(`\\n?${mark}:(\\d+);\\n?`)

  function textOf(part: Part): string {
    if ('text' in part) return part.text
    if ('refusal' in part) return part.refusal
    return `${mark}:${kept.push(part) - 1};`
  }

  return {
    /** Returns the content of a message as one text. */
    taken: (content: Content): string | null =>
      Array.isArray(content) ? content.map(textOf).join('\n') : (content ?? null),
    /** Returns the message with the media that its marks stand for. */
    restored: (message: Message): MessageWithMedia => {
      // Texts alternate with the numbers of the media parts between them.
      const pieces = message.content?.split(marks) ?? []
      if (pieces.length < 2) return message
      const parts = pieces.map(
        (piece, at): Part => (at % 2 === 1 ? kept[Number(piece)]! : { type: 'text', text: piece }),
      )
      return { ...message, content: parts.filter(part => !('text' in part) || part.text !== '') }
    },
  }
}
