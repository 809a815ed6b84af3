import type { Failure } from '../failure.ts'
import { ulid } from '../ids.ts'
import type { Usage } from '../store/store.ts'
import { type ChoiceState, newChoice, type Piece, shapeDelta } from './chat/chat-chunk.ts'
import { shapeCompletionText } from './completion/completion-chunk.ts'
import type { AnswerFormat } from './prepared.ts'
import { engineFault, secondOf, tokenCount, usageBody, usageObject, usageOf } from './protocols/answer.ts'
import { errorIn } from './protocols/engine-error.ts'
import { finishReason } from './protocols/finish-reason.ts'
import { dataOf, eventOf, latin1, type Template, template } from './stream-text.ts'

/** What the answer to a streamed request must look like. */
export interface StreamAnswerFormat {
  task: 'std/chat-completion' | 'std/completion'
  modelId: string
  /** Whether the caller asked for the usage chunk of a stream. */
  includeUsage: boolean
}

/** Whether answers of this kind can be streamed. */
export const isStreamable = (answerFormat: AnswerFormat): answerFormat is Extract<AnswerFormat, StreamAnswerFormat> =>
  answerFormat.task in kinds

const kinds = {
  'std/chat-completion': { object: 'chat.completion.chunk', prefix: 'chatcmpl', piece: shapeDelta },
  'std/completion': { object: 'text_completion', prefix: 'cmpl', piece: shapeCompletionText },
} satisfies Record<
  StreamAnswerFormat['task'],
  { object: string; prefix: string; piece: (choice: Record<string, unknown>, state: ChoiceState) => Piece }
>

/** What some servers begin a text with: the byte order mark. */
const mark = '\u00ef\u00bb\u00bf'

/** More choices than a request can ask for. */
const maxChoices = 2048 * 128

/**
 * An engine's stream in the contract's words, event by event. Texts are latin1 of the bytes, so that nothing is decoded
 * that only passes through. Most events of a stream differ from the one before in one text: such an event is cut and
 * pasted by the template that the last one left; every other is parsed and written anew. What it knows of the stream
 * (its usage, whether it ended) is there at any moment, because a stream may be left at any moment.
 */
export class StreamShape {
  /** Events so far that carried some of the answer. */
  pieces = 0
  readonly #answerFormat: StreamAnswerFormat
  #template: Template | undefined
  #head: { id: string; object: string; created: number; model: string; system_fingerprint?: string } | undefined
  #choices = new Map<number, ChoiceState>()
  #usage: unknown
  /** Of the last event that came by the template: read when it is asked for. */
  #usageText: string | undefined
  #promptTokens = 0
  #done = false

  constructor(answerFormat: StreamAnswerFormat) {
    this.#answerFormat = answerFormat
  }

  /** What the engine said that it used; of what it did not say, the answer counts one token for each piece. */
  get usage(): Usage {
    const reportedUsage = usageOf(this.#reportedUsage())
    if (reportedUsage.inputTokens > 0 || reportedUsage.outputTokens > 0) return reportedUsage
    return { inputTokens: this.#promptTokens, outputTokens: this.pieces }
  }

  /**
   * What the caller gets for one event, given without the blank line that ends it: undefined where that is the event
   * itself, and an empty text where it is nothing. Throws the Failure that the engine reports or is at fault of.
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
    const data = dataOf(event.startsWith(mark) ? event.slice(mark.length) : event)
    if (data === undefined) return ''
    if (data === '[DONE]') {
      this.#done = true
      return ''
    }
    return this.#rewrite(event, data)
  }

  /** The end of the stream. Throws Failure `worker_error` where the engine's broke off. */
  end(): string {
    const open = [...this.#choices].filter(([, choice]) => !choice.ended)
    const none = this.#choices.size === 0
    if (none || (open.length > 0 && !this.#done)) throw engineFault(none ? 'no stream' : 'a stream that broke off')
    // It said that it was done and not why, as some do.
    const ends = open.map(([index, choice]) =>
      this.#frame([this.#choice(index, {}, choice.calls.length > 0 ? 'tool_calls' : 'stop', choice)]),
    )
    const usage = this.#answerFormat.includeUsage
      ? latin1(
          `data: ${JSON.stringify({ ...this.#head, choices: [], usage: usageBody(this.usage, this.#reportedUsage()) })}\n\n`,
        )
      : ''
    return `${ends.join('')}${usage}data: [DONE]\n\n`
  }

  #reportedUsage(): unknown {
    if (this.#usageText === undefined) return this.#usage
    try {
      this.#usage = JSON.parse(this.#usageText)
    } catch {}
    this.#usageText = undefined
    return this.#usage
  }

  #rewrite(event: string, data: string): string {
    let value: Record<string, unknown>
    try {
      value = JSON.parse(Buffer.from(data, 'latin1').toString('utf8')) as Record<string, unknown>
    } catch {
      throw engineFault('an event that is not JSON')
    }
    if (value === null || typeof value !== 'object' || Array.isArray(value))
      throw engineFault('an event that is not an object')
    const wrong: Failure | undefined = errorIn(value, eventOf(event))
    if (wrong) throw wrong
    const usage = usageObject(value)
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
      // What begins says more than what goes on, and after the last there must be no more.
      const lasting = choices.length === 1 && this.#begun() === begun && choices[0]!.finish_reason === null
      this.#template = lasting ? template(event, written) : undefined
    }
    return written
  }

  /** Choices and tool calls so far. */
  #begun(): number {
    let count = this.#choices.size
    for (const { calls } of this.#choices.values()) count += calls.length
    return count
  }

  #shapeChoice(sentChoice: Record<string, unknown>, at: number): Piece | undefined {
    const given = sentChoice.index
    const index = typeof given === 'number' && Number.isInteger(given) && given >= 0 && given < maxChoices ? given : at
    let state = this.#choices.get(index)
    if (!state) this.#choices.set(index, (state = newChoice()))
    if (state.ended) return undefined
    const first = !state.begun
    const { choice, says } = kinds[this.#answerFormat.task].piece(sentChoice, state)
    const reason = finishReason(sentChoice.finish_reason) ?? null
    // An event that says nothing is kept where it begins or ends something.
    if (!says && reason === null && !(first && this.#answerFormat.task === 'std/chat-completion')) return undefined
    return { choice: this.#choice(index, choice, reason, state), says }
  }

  #choice(index: number, piece: Record<string, unknown>, reason: string | null, state: ChoiceState) {
    if (reason !== null) {
      state.ended = true
      this.#template = undefined
    }
    const rest = this.#answerFormat.task === 'std/chat-completion' ? { delta: {}, ...piece } : { text: '', ...piece }
    return { index, ...rest, logprobs: piece.logprobs ?? null, finish_reason: reason } as Record<string, unknown>
  }

  #frame(choices: object[]): string {
    const chunk = { ...this.#head, choices, ...(this.#answerFormat.includeUsage ? { usage: null } : {}) }
    return latin1(`data: ${JSON.stringify(chunk)}\n\n`)
  }

  #headOf({ id, created, system_fingerprint: fingerprint }: Record<string, unknown>) {
    const { object, prefix } = kinds[this.#answerFormat.task]
    return {
      id: typeof id === 'string' && id ? id : `${prefix}-${ulid()}`,
      object,
      created: secondOf(created) ?? Math.floor(Date.now() / 1000),
      model: this.#answerFormat.modelId,
      ...(typeof fingerprint === 'string' && fingerprint ? { system_fingerprint: fingerprint } : {}),
    }
  }
}
