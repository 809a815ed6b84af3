import type { CallerSignal } from '../../abort-source.ts'
import type { EngineCall, EngineListener, Lease } from '../../models/fleet.ts'

/** One request to an engine, its answer whole. Rejects with the Failure that the engine or the caller's leaving makes. */
export function ask(
  lease: Lease,
  path: string,
  body: EngineCall['body'],
  maxBytes: number,
  signal: CallerSignal,
  more: Pick<EngineCall, 'method' | 'contentType' | 'patienceMs'> = {},
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const leave = () => {
      exchange.abort()
      reject(signal.reason)
    }
    const listener: EngineListener = {
      accepted() {},
      chunk: bytes => void chunks.push(bytes),
      finished() {
        signal.removeEventListener('abort', leave)
        resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
      },
      failed(failure) {
        signal.removeEventListener('abort', leave)
        reject(failure)
      },
    }
    const exchange = lease.open({ ...more, path, body, stream: false, maxBytes }, listener)
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
}
