import type { CallerSignal } from '../abort-source.ts'
import { Failure } from '../failure.ts'
import type { Lease } from '../models/fleet.ts'
import type { Usage } from '../store/store.ts'
import { chatCompletion } from './chat/chat-completion.ts'
import { engineFault } from './protocols/answer.ts'
import { type AskOptions, openShortened, readAnswer } from './protocols/ask.ts'
import { type StreamAnswerFormat, StreamShape } from './stream-shape.ts'
import { dataOf } from './stream-text.ts'

interface Gathered {
  content: string
  reasoning: string
  refusal: string
  finish: string | null
}

type Chunk = Record<'id' | 'created' | 'system_fingerprint' | 'usage', unknown> & {
  choices: {
    index: number
    delta?: { content?: string | null; reasoning_content?: string; refusal?: string | null }
    text?: string
    finish_reason: string | null
  }[]
}

/**
 * A whole answer that the engine sends as a stream. Engines report usage in the events of a stream, but only at the end of
 * a whole answer: a caller who disconnects before the end would not be billed.
 */
export class AnswerCollector {
  /** Set if the answer of the engine is invalid; not set if the engine or the connection failed. */
  fault: Failure | undefined
  readonly #answerFormat: StreamAnswerFormat
  readonly #maxCharacters: number
  readonly #meter: { output: number }
  readonly #shape: StreamShape
  readonly #choices = new Map<number, Gathered>()
  #head: Partial<Chunk> | undefined
  #usage: unknown
  #partial = ''
  #characters = 0

  /** `meter` counts the pieces of the answer as they arrive. */
  constructor(answerFormat: StreamAnswerFormat, maxCharacters: number, meter: { output: number }) {
    this.#answerFormat = answerFormat
    this.#meter = meter
    this.#maxCharacters = maxCharacters
    this.#shape = new StreamShape({ ...answerFormat, includeUsage: true })
  }

  /** The usage that the engine has reported so far. */
  get usage(): Usage {
    return this.#shape.usage
  }

  /** Returns the part of a usage that `meter` has not counted. */
  uncounted({ inputTokens, outputTokens }: Usage): Usage {
    return { inputTokens, outputTokens: Math.max(0, outputTokens - this.#shape.pieces) }
  }

  /**
   * Requests the stream and resolves with the answer in the form of a whole one. Rejects with the Failure of the engine or
   * the reason of the signal; `usage` keeps its last value.
   */
  ask(
    lease: Lease,
    path: string,
    body: string | Uint8Array,
    signal: CallerSignal,
    {
      droppable,
      ignored,
      ...marks
    }: Pick<AskOptions, 'droppable' | 'ignored' | 'members' | 'unstored' | 'several'> = {},
  ): Promise<Buffer> {
    /** The answer if the engine does not stream. */
    let whole: Buffer[] | undefined
    let bytesOfWhole = 0
    const call = { path, body, ...marks, stream: true, maxBytes: Number.POSITIVE_INFINITY }
    return readAnswer(listener => openShortened(lease, call, listener, droppable), signal, {
      accepted(type, paths) {
        whole = type.startsWith('text/event-stream') ? undefined : []
        if (paths !== undefined) ignored?.(paths)
      },
      chunk: bytes =>
        this.#guarded(() => {
          if (!whole) return this.#feed(bytes)
          bytesOfWhole += bytes.length
          this.#bound(bytesOfWhole)
          whole.push(bytes)
        }),
      finished: () => this.#guarded(() => (whole ? Buffer.concat(whole) : this.#end())),
    })
  }

  /** Does a part of the work: what it throws is a fault of the answer. */
  #guarded<Result>(work: () => Result): Result {
    try {
      return work()
    } catch (thrown) {
      this.fault = Failure.from(thrown)
      throw this.fault
    }
  }

  #feed(bytes: Buffer): void {
    const text = this.#partial + bytes.toString('latin1')
    const windows = text.includes('\r')
    let at = 0
    for (;;) {
      const blank = text.indexOf('\n\n', at)
      const crlf = windows ? text.indexOf('\r\n\r\n', at) : -1
      const wide = crlf >= 0 && (blank < 0 || crlf < blank)
      const stop = wide ? crlf : blank
      if (stop < 0) break
      this.#event(text.slice(at, stop))
      at = stop + (wide ? 4 : 2)
    }
    this.#partial = text.slice(at)
    this.#bound(this.#partial.length)
  }

  #event(event: string): void {
    const before = this.#shape.pieces
    const rewritten = this.#shape.event(event)
    this.#meter.output += this.#shape.pieces - before
    this.#gather(rewritten ?? event)
  }

  #end(): Buffer {
    const last = this.#partial.trimEnd()
    if (last) this.#event(last)
    this.#gather(this.#shape.end())
    const chat = this.#answerFormat.task === chatCompletion.id
    const choices = [...this.#choices].map(([index, { content, reasoning, refusal, finish }]) => ({
      index,
      ...(chat
        ? {
            message: {
              role: 'assistant',
              content,
              reasoning_content: reasoning || undefined,
              refusal: refusal || undefined,
            },
          }
        : { text: content }),
      finish_reason: finish,
    }))
    return Buffer.from(JSON.stringify({ ...this.#head, choices, usage: this.#usage }))
  }

  /** Adds events that StreamShape has rewritten; each has one line. */
  #gather(events: string): void {
    for (const event of events.split('\n\n')) {
      const data = dataOf(event)
      if (data === undefined || data === '' || data === '[DONE]') continue
      const { id, created, system_fingerprint, usage, choices } = JSON.parse(
        Buffer.from(data, 'latin1').toString('utf8'),
      ) as Chunk
      this.#head ??= { id, created, system_fingerprint }
      this.#usage = usage ?? this.#usage
      for (const choice of choices) this.#add(choice)
    }
  }

  #add({ index, delta, text, finish_reason }: Chunk['choices'][number]): void {
    let choice = this.#choices.get(index)
    if (!choice) this.#choices.set(index, (choice = { content: '', reasoning: '', refusal: '', finish: null }))
    const content = delta?.content ?? text ?? ''
    const reasoning = delta?.reasoning_content ?? ''
    const refusal = delta?.refusal ?? ''
    choice.content += content
    choice.reasoning += reasoning
    choice.refusal += refusal
    choice.finish = finish_reason ?? choice.finish
    this.#bound((this.#characters += content.length + reasoning.length + refusal.length))
  }

  #bound(size: number): void {
    if (size > this.#maxCharacters) throw engineFault(`with more than ${this.#maxCharacters} bytes`)
  }
}
