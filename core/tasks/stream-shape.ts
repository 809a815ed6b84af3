import { isObject, jsonOf } from '../json.ts'
import type { Usage } from '../store/store.ts'
import { type ChoiceState, type ChunkPiece, newChoice, shapeDelta } from './chat/chat-chunk.ts'
import { chatCompletion } from './chat/chat-completion.ts'
import { completion, shapeCompletionText } from './completion/completion.ts'
import type { AnswerFormat } from './engine-request.ts'
import {
  answerHead,
  answerUsage,
  answerUsageObject,
  engineFault,
  finishReason,
  tokenCount,
  usageBody,
} from './protocols/answer.ts'
import { errorIn } from './protocols/engine-error.ts'
import { dataOf, type EventTemplate, eventOf, latin1, template } from './stream-text.ts'

/** What the answer to a streamed request must look like. */
export interface StreamAnswerFormat {
  task: typeof chatCompletion.id | typeof completion.id
  modelId: string
  /** Whether the caller requested the usage chunk of a stream. */
  includeUsage: boolean
}

/** Whether answers of this kind can be streamed. */
export const isStreamable = (answerFormat: AnswerFormat): answerFormat is Extract<AnswerFormat, StreamAnswerFormat> =>
  answerFormat.task in kinds

const kinds = {
  [chatCompletion.id]: { object: 'chat.completion.chunk', prefix: 'chatcmpl', piece: shapeDelta },
  [completion.id]: { object: 'text_completion', prefix: 'cmpl', piece: shapeCompletionText },
} satisfies Record<
  StreamAnswerFormat['task'],
  { object: string; prefix: string; piece: (choice: Record<string, unknown>, state: ChoiceState) => ChunkPiece }
>

/** The byte order mark, with which some servers begin a text. */
const byteOrderMark = '\u00ef\u00bb\u00bf'

/** More choices than a request can have. */
const maxChoices = 2048 * 128

/**
 * Rewrites the events of an engine's stream in the form of our API. Texts are latin1 of the bytes, so that bytes that are
 * only passed on are not decoded. Most events differ from the event before only in one text: a template rewrites such an
 * event without parsing it; every other event is parsed and serialized again. Usage and state are always up to date,
 * because the client may disconnect at any time.
 */
export class StreamShape {
  /** Events so far that contained a part of the answer. */
  pieces = 0
  readonly #answerFormat: StreamAnswerFormat
  #template: EventTemplate | undefined
  #head: { id: string; object: string; created: number; model: string; system_fingerprint?: string } | undefined
  #choices = new Map<number, ChoiceState>()
  #usage: unknown
  /** Usage of the last event that a template rewrote. It is parsed only when needed. */
  #usageText: string | undefined
  #promptTokens = 0
  #done = false

  constructor(answerFormat: StreamAnswerFormat) {
    this.#answerFormat = answerFormat
  }

  /** The usage that the engine reported. Without a report, each piece of the answer counts as one token. */
  get usage(): Usage {
    const reportedUsage = answerUsage(this.#reportedUsage())
    if (reportedUsage.inputTokens > 0 || reportedUsage.outputTokens > 0) return reportedUsage
    return { inputTokens: this.#promptTokens, outputTokens: this.pieces }
  }

  /**
   * Returns what the caller gets for one event, which is passed without the blank line at its end: undefined for the
   * unchanged event, an empty text for nothing. Throws the Failure that the engine reports, or that of an invalid event.
   */
  event(event: string): string | undefined {
    const known = this.#template
    if (known) {
      const found = known.apply(event)
      if (found) {
        this.pieces++
        if (found.usage !== undefined) this.#usageText = found.usage
        return found.event
      }
    }
    const data = dataOf(event.startsWith(byteOrderMark) ? event.slice(byteOrderMark.length) : event)
    if (data === undefined) return ''
    if (data === '[DONE]') {
      this.#done = true
      return ''
    }
    return this.#rewrite(event, data)
  }

  /** Returns the last events of the stream. Throws Failure `worker_error` if the engine's stream ended early. */
  end(): string {
    const open = [...this.#choices].filter(([, choice]) => !choice.ended)
    const none = this.#choices.size === 0
    if (none || (open.length > 0 && !this.#done)) throw engineFault(none ? 'no stream' : 'a stream that broke off')
    // Some engines end a stream without a finish reason.
    const ends = open.map(([index, choice]) =>
      this.#frame([this.#choice(index, {}, choice.calls.length > 0 ? 'tool_calls' : 'stop', choice)]),
    )
    const usage = this.#answerFormat.includeUsage
      ? latin1(`data: ${JSON.stringify({ ...this.#head, choices: [], usage: usageBody(this.usage) })}\n\n`)
      : ''
    return `${ends.join('')}${usage}data: [DONE]\n\n`
  }

  #reportedUsage(): unknown {
    if (this.#usageText === undefined) return this.#usage
    this.#usage = jsonOf(this.#usageText) ?? this.#usage
    this.#usageText = undefined
    return this.#usage
  }

  #rewrite(event: string, data: string): string {
    const value = jsonOf(Buffer.from(data, 'latin1').toString('utf8'))
    if (value === undefined) throw engineFault('an event that is not JSON')
    if (!isObject(value)) throw engineFault('an event that is not an object')
    const wrong = errorIn(value, eventOf(event))
    if (wrong) throw wrong
    const usage = answerUsageObject(value)
    if (usage !== null && usage !== undefined) {
      this.#usage = usage
      this.#usageText = undefined
    }
    this.#promptTokens ||= tokenCount((value.prompt_progress as { total?: unknown } | undefined)?.total)
    if (!Array.isArray(value.choices)) return ''
    this.#head ??= this.#headOf(value)
    const begun = this.#begun()
    let says = false
    const choices: Record<string, unknown>[] = []
    value.choices.forEach((one: unknown, at: number) => {
      const shaped = this.#shapeChoice((one ?? {}) as Record<string, unknown>, at)
      if (!shaped) return
      choices.push(shaped.choice)
      says ||= shaped.says
    })
    if (choices.length === 0) return ''
    const written = this.#frame(choices)
    if (says) {
      this.pieces++
      // The first and the last event of a choice or tool call have other members, so they make no template.
      const lasting = choices.length === 1 && this.#begun() === begun && choices[0]!.finish_reason === null
      this.#template = lasting ? template(event, written) : undefined
    }
    return written
  }

  /** Number of choices and tool calls so far. */
  #begun(): number {
    let count = this.#choices.size
    for (const { calls } of this.#choices.values()) count += calls.length
    return count
  }

  #shapeChoice(sentChoice: Record<string, unknown>, at: number): ChunkPiece | undefined {
    const given = sentChoice.index
    const index = typeof given === 'number' && Number.isInteger(given) && given >= 0 && given < maxChoices ? given : at
    let state = this.#choices.get(index)
    if (!state) this.#choices.set(index, (state = newChoice()))
    if (state.ended) return undefined
    const first = !state.begun
    const { choice, says } = kinds[this.#answerFormat.task].piece(sentChoice, state)
    const reason = finishReason(sentChoice.finish_reason) ?? null
    // An event without content is kept if it begins or ends a choice.
    if (!says && reason === null && !(first && this.#answerFormat.task === chatCompletion.id)) return undefined
    return { choice: this.#choice(index, choice, reason, state), says }
  }

  #choice(index: number, piece: Record<string, unknown>, reason: string | null, state: ChoiceState) {
    if (reason !== null) {
      state.ended = true
      this.#template = undefined
    }
    const rest = this.#answerFormat.task === chatCompletion.id ? { delta: {}, ...piece } : { text: '', ...piece }
    return { index, ...rest, logprobs: piece.logprobs ?? null, finish_reason: reason } as Record<string, unknown>
  }

  #frame(choices: object[]): string {
    const chunk = { ...this.#head, choices, ...(this.#answerFormat.includeUsage ? { usage: null } : {}) }
    return latin1(`data: ${JSON.stringify(chunk)}\n\n`)
  }

  #headOf(event: Record<string, unknown>) {
    const { task, modelId } = this.#answerFormat
    const { system_fingerprint: fingerprint } = event
    return {
      ...answerHead(event, { ...kinds[task], modelId }),
      ...(typeof fingerprint === 'string' && fingerprint ? { system_fingerprint: fingerprint } : {}),
    }
  }
}
