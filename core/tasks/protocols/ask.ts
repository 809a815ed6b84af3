import type { CallerSignal } from '../../abort-source.ts'
import type { Failure } from '../../failure.ts'
import type { EngineCall, EngineListener, Exchange, Lease } from '../../models/fleet.ts'
import { type Droppable, shortener } from '../chat/truncation.ts'

interface AskOptions extends Pick<EngineCall, 'method' | 'contentType' | 'patienceMs' | 'workPath' | 'isAnswer'> {
  /** What is left out of a body whose prompt is too long. */
  droppable?: Droppable | undefined
}

/** Sends a request to an engine and resolves with the whole answer. Rejects with Failure, or with the signal's reason. */
export function ask(
  lease: Lease,
  path: string,
  body: EngineCall['body'],
  maxBytes: number,
  signal: CallerSignal,
  { droppable, ...more }: AskOptions = {},
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const onAbort = () => {
      exchange.abort()
      reject(signal.reason)
    }
    const listener: EngineListener = {
      accepted() {},
      chunk: bytes => void chunks.push(bytes),
      finished() {
        signal.removeEventListener('abort', onAbort)
        resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
      },
      failed(failure) {
        signal.removeEventListener('abort', onAbort)
        reject(failure)
      },
    }
    const exchange = openShortened(lease, { ...more, path, body, stream: false, maxBytes }, listener, droppable)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
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
): Exchange {
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
        accepted(type) {
          shorter = undefined
          listener.accepted(type)
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
