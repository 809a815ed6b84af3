import { Readable } from 'node:stream'
import type { CallerSignal } from '../../abort-source.ts'
import type { Failure } from '../../failure.ts'
import type { EngineCall, EngineExchange, EngineListener } from '../../models/engine-call.ts'
import type { Lease } from '../../models/fleet.ts'

/** The answer of an engine while it arrives. */
export interface EngineStream {
  /** Content type of the engine; may be empty. */
  contentType: string
  /** Destroying it ends the engine's request. Fails with the Failure of the engine or the reason of the signal. */
  bytes: Readable
}

/** Failures of answers that are refused. */
export interface StreamFaults {
  maxBytes: number
  tooLong: () => Failure
  empty: () => Failure
  /** Returns the failure for an answer of this content type; undefined if it is accepted. */
  unexpected?: (contentType: string) => Failure | undefined
}

/**
 * Sends a request and resolves when the first bytes of the answer have arrived, so that earlier errors can still be
 * reported or retried. The engine's answer is read only as fast as the stream is.
 */
export function openEngineStream(
  lease: Lease,
  call: Omit<EngineCall, 'stream' | 'maxBytes'>,
  { maxBytes, tooLong, empty, unexpected }: StreamFaults,
  signal: CallerSignal,
): Promise<EngineStream> {
  return new Promise((resolve, reject) => {
    let exchange: EngineExchange | undefined
    let contentType = ''
    let received = 0
    let over = false
    const stream = new Readable({
      highWaterMark: 64 << 10,
      read: () => exchange?.resume(),
      destroy(error, done) {
        end()
        exchange?.abort()
        done(error)
      },
    })
    // Before the promise resolves, an error rejects it; after that it reaches the reader of the stream.
    stream.on('error', reject)

    const leave = () => stream.destroy(signal.reason as Error)
    const end = () => {
      over = true
      signal.removeEventListener('abort', leave)
    }
    const listener: EngineListener = {
      accepted(type) {
        contentType = type
        const fault = unexpected?.(type)
        if (fault) stream.destroy(fault)
      },
      chunk(bytes) {
        if (over) return
        received += bytes.length
        if (received > maxBytes) return void stream.destroy(tooLong())
        if (!stream.push(bytes)) exchange?.pause()
        resolve({ contentType, bytes: stream })
      },
      finished() {
        if (over) return
        if (received === 0) return void stream.destroy(empty())
        end()
        stream.push(null)
      },
      failed: failure => stream.destroy(failure),
    }
    exchange = lease.open({ ...call, stream: true, maxBytes: Number.POSITIVE_INFINITY }, listener)
    if (over) exchange.abort()
    else if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
}
