import { Readable } from 'node:stream'
import type { CallerSignal } from '../../abort-source.ts'
import { Failure } from '../../failure.ts'
import { diskFailure } from '../../files/write.ts'
import type { EngineListener, Exchange, Lease } from '../../models/fleet.ts'
import { engineFault } from './answer.ts'

export interface EngineAudio {
  /** Content type of the engine; may be empty. */
  contentType: string
  /** Destroying it ends the engine's request. Fails with the Failure of the engine or the reason of the signal. */
  audio: Readable
}

/** Content types that are not audio. */
const notAudio = /^(application\/(problem\+)?json|text\/)/i

/**
 * Requests audio and resolves when its first bytes have arrived, so that earlier errors can still be reported or retried.
 * The engine's answer is read only as fast as the stream is.
 */
export function synthesize(
  lease: Lease,
  { path, body, maxBytes }: { path: string; body: string; maxBytes: number },
  signal: CallerSignal,
): Promise<EngineAudio> {
  return new Promise((resolve, reject) => {
    let exchange: Exchange | undefined
    let contentType = ''
    let received = 0
    let over = false
    const audio = new Readable({
      highWaterMark: 64 << 10,
      read: () => exchange?.resume(),
      destroy(error, done) {
        end()
        exchange?.abort()
        done(error)
      },
    })
    // Before the promise resolves, an error rejects it; after that it reaches the reader of the stream.
    audio.on('error', reject)

    const leave = () => audio.destroy(signal.reason as Error)
    const end = () => {
      over = true
      signal.removeEventListener('abort', leave)
    }
    const listener: EngineListener = {
      accepted(type) {
        contentType = type
        if (notAudio.test(type)) audio.destroy(engineFault(`'${type.slice(0, 60)}' instead of audio`))
      },
      chunk(bytes) {
        if (over) return
        received += bytes.length
        if (received > maxBytes)
          return void audio.destroy(engineFault(`with more audio than ${Math.floor(maxBytes / 2 ** 20)} MiB`))
        if (!audio.push(bytes)) exchange?.pause()
        resolve({ contentType, audio })
      },
      finished() {
        if (over) return
        if (received === 0) return void audio.destroy(engineFault('without any audio'))
        end()
        audio.push(null)
      },
      failed: failure => audio.destroy(failure),
    }
    exchange = lease.open({ path, body, stream: true, maxBytes: Number.POSITIVE_INFINITY }, listener)
    if (over) exchange.abort()
    else if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
}

/**
 * Returns the Failure of an audio stream. A stream fails with whatever error came first, which can be that of the disk to
 * which it is written.
 */
export const audioFailure = (thrown: unknown, signal: CallerSignal): Failure =>
  Failure.from(signal.aborted ? signal.reason : diskFailure(thrown))
