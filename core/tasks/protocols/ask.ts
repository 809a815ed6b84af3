import type { CallerSignal } from '../../abort-source.ts'
import type { Failure } from '../../failure.ts'
import type { EngineCall, EngineExchange, EngineListener, Lease } from '../../models/fleet.ts'
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
export function readAnswer<Result>(
  open: (listener: EngineListener) => EngineExchange,
  signal: CallerSignal,
  reader: AnswerReader<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const fail = (thrown: unknown) => {
      signal.removeEventListener('abort', onAbort)
      reject(thrown)
    }
    const stop = (thrown: unknown) => {
      exchange.abort()
      fail(thrown)
    }
    const onAbort = () => stop(signal.reason)
    const exchange = open({
      accepted: (type, ignored) => reader.accepted?.(type, ignored),
      chunk(bytes) {
        try {
          reader.chunk(bytes, exchange)
        } catch (thrown) {
          stop(thrown)
        }
      },
      finished() {
        signal.removeEventListener('abort', onAbort)
        try {
          resolve(reader.finished())
        } catch (thrown) {
          reject(thrown)
        }
      },
      failed: fail,
    })
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
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
