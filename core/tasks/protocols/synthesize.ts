import { Readable } from 'node:stream'
import type { CallerSignal } from '../../abort-source.ts'
import { Failure } from '../../failure.ts'
import { diskFailure } from '../../files/write.ts'
import type { EngineListener, Exchange, Lease } from '../../models/fleet.ts'
import { engineFault } from './answer.ts'

export interface EngineAudio {
  /** As the engine calls it; may be empty. */
  contentType: string
  /** Destroying it ends the engine's request. Breaks off with the Failure that the engine or the caller's leaving makes. */
  sound: Readable
}

/** Answers that are no sound, whatever their status. */
const noSound = /^(application\/(problem\+)?json|text\/)/i

/**
 * One request that is answered with sound: resolves with its first bytes at hand, so that what went wrong until then can
 * still be told, or tried again. Holds no more than a reader has room for: the engine's answer is read as this is.
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
    const sound = new Readable({
      highWaterMark: 64 << 10,
      read: () => exchange?.resume(),
      destroy(error, done) {
        end()
        exchange?.abort()
        done(error)
      },
    })
    // Whoever reads it hears of it as well; before that nobody listens.
    sound.on('error', reject)

    const leave = () => sound.destroy(signal.reason as Error)
    const end = () => {
      over = true
      signal.removeEventListener('abort', leave)
    }
    const listener: EngineListener = {
      accepted(type) {
        contentType = type
        if (noSound.test(type)) sound.destroy(engineFault(`'${type.slice(0, 60)}' where sound was asked for`))
      },
      chunk(bytes) {
        if (over) return
        received += bytes.length
        if (received > maxBytes)
          return void sound.destroy(engineFault(`with more sound than ${Math.floor(maxBytes / 2 ** 20)} MiB`))
        if (!sound.push(bytes)) exchange?.pause()
        resolve({ contentType, sound })
      },
      finished() {
        if (over) return
        if (received === 0) return void sound.destroy(engineFault('without any sound'))
        end()
        sound.push(null)
      },
      failed: failure => sound.destroy(failure),
    }
    exchange = lease.open({ path, body, stream: true, maxBytes: Number.POSITIVE_INFINITY }, listener)
    if (over) exchange.abort()
    else if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
}

/**
 * What went wrong with a sound, once it has: streams break off with whatever error came first, that of the disk too
 * which it is written to.
 */
export const audioFailure = (thrown: unknown, signal: CallerSignal): Failure =>
  Failure.from(signal.aborted ? signal.reason : diskFailure(thrown))
