import type { CallerSignal } from '../../abort-source.ts'
import type { EngineCall, EngineListener, Lease } from '../../models/fleet.ts'
import type { Droppable } from '../chat/truncation.ts'
import { openShortened } from './shortened-stream.ts'

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
