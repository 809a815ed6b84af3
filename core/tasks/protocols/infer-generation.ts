import { Failure, invalidValue } from '../../failure.ts'
import { jsonOf } from '../../json.ts'
import type { Lease } from '../../models/fleet.ts'
import { generationTasks, operationOf } from '../../schemas/task.ts'
import type { RunReport } from '../run-job.ts'
import { readAnswer } from './ask.ts'
import { oneLine } from './engine-text.ts'
import { EngineMessage, type GenerationCall, generatePath } from './generation-call.ts'
import type { GenerationProtocol } from './protocol.ts'

export type Completed = Extract<EngineMessage, { type: 'completed' }>

/** The Failure of a job for an error of its engine. */
export const workerError = (modelId: string, what: string): Failure =>
  new Failure('worker_error', `The engine of '${modelId}' ${what}. Trying again may help.`)

/** Our own protocol for engines that write files, described at `generatePath`. */
export const inferGeneration: GenerationProtocol = {
  name: 'infer-generation',
  paths: Object.fromEntries(generationTasks.map(task => [operationOf(task), generatePath])),
  generate: (lease, { path }, call, signal, report) => runGeneration(lease, path, call, signal, report),
}

/**
 * Runs one generation on an engine: sends the call, reports progress and log lines, and resolves with the files that the
 * engine names. Rejects with Failure `worker_error` if the engine fails or violates the protocol, `invalid_value` if it
 * refuses the request, or with the signal's reason; then the request to the engine is aborted at once.
 */
async function runGeneration(
  lease: Lease,
  path: string,
  generation: GenerationCall,
  signal: AbortSignal,
  report: RunReport,
): Promise<Completed> {
  let last: EngineMessage | undefined
  const reader = new MessageReader(message => {
    if (message.type === 'progress') report.progress(message.fraction)
    else if (message.type === 'preview')
      report.preview?.({ image: message.image, bytes: Buffer.from(message.data, 'base64') })
    else if (message.type === 'log') report.log(message.level, message.message)
    else last = message
  })
  const call = { path, body: JSON.stringify(generation), stream: true, maxBytes: Number.POSITIVE_INFINITY }
  try {
    return await readAnswer(listener => lease.open(call, listener), signal, {
      chunk: bytes => reader.feed(bytes),
      finished() {
        reader.end()
        const final = last as Extract<EngineMessage, { type: 'completed' | 'failed' }>
        if (final.type === 'completed') return final
        throw refusal(lease.modelId, final.error)
      },
    })
  } catch (thrown) {
    throw thrown instanceof EngineFault ? workerError(lease.modelId, thrown.message) : thrown
  }
}

const refusal = (modelId: string, { message, invalid }: { message: string; invalid: boolean }): Failure =>
  invalid
    ? invalidValue(`The engine refused the request: ${oneLine(message) || 'it did not say why'}`)
    : new Failure('worker_error', `The engine of '${modelId}' failed: ${oneLine(message) || 'it did not say why'}`)

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

/**
 * Parses the messages of an engine from a stream. Lines and their total size are checked before they are joined, and
 * nothing may follow the last message.
 */
export class MessageReader {
  readonly #bounds: MessageBounds
  readonly #onMessage: (message: EngineMessage) => void
  #rest: Uint8Array[] = []
  #held = 0
  #total = 0
  #last: 'completed' | 'failed' | undefined

  /** `onMessage` is called with each message in order. */
  constructor(onMessage: (message: EngineMessage) => void, bounds: MessageBounds = messageBounds) {
    this.#onMessage = onMessage
    this.#bounds = bounds
  }

  /** Throws EngineFault for an invalid message. */
  feed(bytes: Uint8Array): void {
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
      if (end < 0) return
      this.#line()
      from = end + 1
    }
  }

  /** Call this at the end of the stream. Throws EngineFault if it ended too early. */
  end(): void {
    if (this.#held > 0) this.#line()
    if (this.#last === undefined) throw new EngineFault("ended its answer without saying 'completed' or 'failed'")
  }

  #line(): void {
    const bytes = this.#rest.length === 1 ? this.#rest[0]! : Buffer.concat(this.#rest)
    this.#rest = []
    this.#held = 0
    let text: string
    try {
      text = utf8.decode(bytes)
    } catch {
      throw new EngineFault('sent a line that is not UTF-8')
    }
    if (text.trim() === '') return
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
    this.#onMessage(message)
  }
}
