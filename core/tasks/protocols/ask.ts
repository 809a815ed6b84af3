import type { CallerSignal } from '../../abort-source.ts'
import type { Failure } from '../../failure.ts'
import type { EngineCall, EngineExchange, EngineListener } from '../../models/engine-call.ts'
import type { Lease } from '../../models/fleet.ts'
import { type Droppable, shortener } from '../chat/truncation.ts'

export interface AskOptions
  extends Pick<EngineCall, 'method' | 'contentType' | 'patienceMs' | 'workPath' | 'isAnswer'>,
    Pick<EngineCall, 'members' | 'unstored' | 'several'> {
  /** What is left out of a body whose prompt is too long. */
  droppable?: Droppable | undefined
  /** Called before the answer with what the engine left out of the request, if it left anything out. */
  ignored?: ((paths: string) => void) | undefined
}

/** Makes a result of the answer of an engine. What its functions throw ends the request. */
interface AnswerReader<Result> {
  accepted?(contentType: string, ignored: string | undefined): void
  chunk(bytes: Buffer, exchange: EngineExchange): void
  /** Called after the last chunk. */
  finished(): Result | Promise<Result>
}

/** Sends a request and resolves with its result. Rejects with Failure, with the signal's reason, or as the reader does. */
export const readAnswer = <Result>(
  open: (listener: EngineListener) => EngineExchange,
  signal: CallerSignal,
  reader: AnswerReader<Result>,
): Promise<Result> => new Promise((resolve, reject) => new Reading(signal, reader, resolve, reject).begin(open))

/** The listener of one answer. A class, because each closure in its place would be made for every request. */
class Reading<Result> implements EngineListener {
  readonly #signal: CallerSignal
  readonly #reader: AnswerReader<Result>
  readonly #resolve: (result: Result | Promise<Result>) => void
  readonly #reject: (thrown: unknown) => void
  readonly #onAbort = () => this.#stop(this.#signal.reason)
  #exchange: EngineExchange | undefined

  constructor(
    signal: CallerSignal,
    reader: AnswerReader<Result>,
    resolve: (result: Result | Promise<Result>) => void,
    reject: (thrown: unknown) => void,
  ) {
    this.#signal = signal
    this.#reader = reader
    this.#resolve = resolve
    this.#reject = reject
  }

  begin(open: (listener: EngineListener) => EngineExchange): void {
    this.#exchange = open(this)
    if (this.#signal.aborted) this.#onAbort()
    else this.#signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  accepted(contentType: string, ignored?: string): void {
    this.#reader.accepted?.(contentType, ignored)
  }

  chunk(bytes: Buffer): void {
    try {
      this.#reader.chunk(bytes, this.#exchange!)
    } catch (thrown) {
      this.#stop(thrown)
    }
  }

  finished(): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
    try {
      this.#resolve(this.#reader.finished())
    } catch (thrown) {
      this.#reject(thrown)
    }
  }

  failed(thrown: unknown): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
    this.#reject(thrown)
  }

  #stop(thrown: unknown): void {
    this.#exchange!.abort()
    this.failed(thrown)
  }
}

/** Sends a request to an engine and resolves with the whole answer. Rejects with Failure, or with the signal's reason. */
export function ask(
  lease: Lease,
  path: string,
  body: EngineCall['body'],
  maxBytes: number,
  signal: CallerSignal,
  { droppable, ignored, ...more }: AskOptions = {},
): Promise<Buffer> {
  const chunks: Buffer[] = []
  const call = { ...more, path, body, stream: false, maxBytes }
  return readAnswer(listener => openShortened(lease, call, listener, droppable), signal, {
    accepted: (_type, paths) => paths !== undefined && ignored?.(paths),
    chunk: bytes => void chunks.push(bytes),
    finished: () => (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)),
  })
}

/**
 * Opens a request. If the engine refuses its prompt as too long, sends it again without what may be left out, a bounded
 * number of times.
 */
export function openShortened(
  lease: Pick<Lease, 'open'>,
  call: EngineCall,
  listener: EngineListener,
  droppable: Droppable | undefined,
): EngineExchange {
  // The closures below must not keep the body: it is not needed for long streams.
  const { body, ...facts } = call
  const isText = typeof body === 'string' || body instanceof Uint8Array
  if (!droppable || droppable.units.length === 0 || !isText) return lease.open(call, listener)
  // Released with the first byte of the answer.
  let shorter: ((failure: Failure) => string | undefined) | undefined = shortener(body, droppable)
  let paused = false
  const send = (sent: string | Uint8Array) =>
    lease.open(
      { ...facts, body: sent },
      {
        accepted(...answer) {
          shorter = undefined
          listener.accepted(...answer)
        },
        chunk: bytes => listener.chunk(bytes),
        finished: () => listener.finished(),
        failed(failure) {
          const rest = shorter?.(failure)
          if (rest === undefined) return listener.failed(failure)
          exchange = send(rest)
          if (paused) exchange.pause()
        },
      },
    )
  let exchange = send(body)
  return {
    pause() {
      paused = true
      exchange.pause()
    },
    resume() {
      paused = false
      exchange.resume()
    },
    abort: () => exchange.abort(),
  }
}
