import { Transform, type TransformCallback } from 'node:stream'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { Failure } from '../failure.ts'

type Answer = Uint8Array | { error: string }

/**
 * Turns samples (16 bits, mono) into MP3 in a thread. The thread gets one piece at a time, so a slow reader slows the
 * thread. `begin` sends the thread its end of the port and rejects if the thread cannot be started.
 */
export class Mp3Stream extends Transform {
  readonly #port: MessagePort
  #pending: ((answer: Answer) => void) | undefined

  constructor(begin: (port: MessagePort) => Promise<void>) {
    super({ highWaterMark: 64 << 10 })
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.on('message', (answer: Answer) => this.#pending?.(answer))
    begin(port2).catch((cause: unknown) => this.destroy(Failure.from(cause)))
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#encode(new Uint8Array(chunk), done)
  }

  override _flush(done: TransformCallback): void {
    this.#encode(null, done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#port.close()
    done(error)
  }

  #encode(samples: Uint8Array<ArrayBuffer> | null, done: TransformCallback): void {
    this.#pending = answer => {
      this.#pending = undefined
      if ('error' in answer)
        done(new Failure('worker_error', 'The speech could not be encoded as MP3.', { cause: answer.error }))
      else if (answer.byteLength === 0) done()
      else done(null, Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength))
    }
    this.#port.postMessage(samples, samples === null ? [] : [samples.buffer])
  }
}
