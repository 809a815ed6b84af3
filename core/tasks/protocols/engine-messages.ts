import { jsonOf } from '../../json.ts'
import { oneLine } from './engine-text.ts'
import { EngineMessage } from './generation-call.ts'

/** A violation of the protocol by an engine, as the end of a sentence: "sent a line of more than 1048576 bytes". */
export class EngineFault extends Error {}

interface MessageBounds {
  /** Bytes of one line. */
  line: number
  /** Bytes of all lines. */
  total: number
}
export const messageBounds: MessageBounds = { line: 1 << 20, total: 64 << 20 }

const lineFeed = 0x0a
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Characters of a line that an error message quotes. */
const shownText = 80
const shown = (text: string): string => {
  const plain = oneLine(text, shownText + 1)
  return `'${plain.length > shownText ? `${plain.slice(0, shownText)}…` : plain}'`
}

/** What takes the bytes after a message. */
export interface BytesAfter {
  /** Returns false if the caller should wait before it feeds more. Throws EngineFault for bytes that are too many. */
  feed(bytes: Uint8Array): boolean
}

/**
 * Parses the messages of an engine from a stream. Lines and their total size are checked before they are joined. After the
 * last message nothing may follow but the bytes that `onMessage` has announced.
 */
export class MessageReader {
  readonly #bounds: MessageBounds
  readonly #onMessage: (message: EngineMessage) => BytesAfter | undefined
  #rest: Uint8Array[] = []
  #held = 0
  #total = 0
  #last: 'completed' | 'failed' | undefined
  #after: BytesAfter | undefined

  /** `onMessage` is called with each message in order. If it returns something, that takes all that follows. */
  constructor(onMessage: (message: EngineMessage) => BytesAfter | undefined, bounds: MessageBounds = messageBounds) {
    this.#onMessage = onMessage
    this.#bounds = bounds
  }

  /** Returns false if the caller should wait before it feeds more. Throws EngineFault for an invalid message. */
  feed(bytes: Uint8Array): boolean {
    if (this.#after) return this.#after.feed(bytes)
    this.#total += bytes.length
    if (this.#total > this.#bounds.total)
      throw new EngineFault(`sent more than ${this.#bounds.total} bytes of messages`)
    let from = 0
    for (;;) {
      const end = bytes.indexOf(lineFeed, from)
      const piece = bytes.subarray(from, end < 0 ? bytes.length : end)
      this.#held += piece.length
      if (this.#held > this.#bounds.line) throw new EngineFault(`sent a line of more than ${this.#bounds.line} bytes`)
      if (piece.length > 0) this.#rest.push(piece)
      if (end < 0) return true
      const after = this.#line()
      from = end + 1
      if (after) return after.feed(bytes.subarray(from))
    }
  }

  /** Call this at the end of the stream. Throws EngineFault if it ended too early. */
  end(): void {
    if (this.#held > 0) this.#line()
    if (this.#last === undefined) throw new EngineFault("ended its answer without saying 'completed' or 'failed'")
  }

  #line(): BytesAfter | undefined {
    const bytes = this.#rest.length === 1 ? this.#rest[0]! : Buffer.concat(this.#rest)
    this.#rest = []
    this.#held = 0
    let text: string
    try {
      text = utf8.decode(bytes)
    } catch {
      throw new EngineFault('sent a line that is not UTF-8')
    }
    if (text.trim() === '') return undefined
    if (this.#last !== undefined) throw new EngineFault(`went on after '${this.#last}' with ${shown(text)}`)
    const value = jsonOf(text)
    if (value === undefined) throw new EngineFault(`sent a line that is not JSON: ${shown(text)}`)
    const parsed = EngineMessage.safeParse(value)
    if (!parsed.success) {
      const [issue] = parsed.error.issues
      const place = issue!.path.join('.')
      throw new EngineFault(
        `sent a message that is none (${place ? `${place}: ` : ''}${issue!.message}): ${shown(text)}`,
      )
    }
    const message = parsed.data
    if (message.type === 'completed' || message.type === 'failed') this.#last = message.type
    return (this.#after = this.#onMessage(message))
  }
}
