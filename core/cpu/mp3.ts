import { Transform, type TransformCallback } from 'node:stream'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { Failure } from '../failure.ts'

type Answer = Uint8Array | { error: string }

/**
 * Samples in (16 bits, mono), MP3 out, made in a thread. One piece is on its way at a time, so a reader who is slow
 * slows the thread. `begin` hands the thread its end of the port and rejects when it will not listen.
 */
export class Mp3Stream extends Transform {
  readonly #port: MessagePort
  #waiting: ((answer: Answer) => void) | undefined

  constructor(begin: (port: MessagePort) => Promise<void>) {
    super({ highWaterMark: 64 << 10 })
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.on('message', (answer: Answer) => this.#waiting?.(answer))
    begin(port2).catch((cause: unknown) => this.destroy(Failure.from(cause)))
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#ask(new Uint8Array(chunk), done)
  }

  override _flush(done: TransformCallback): void {
    this.#ask(null, done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#port.close()
    done(error)
  }

  #ask(samples: Uint8Array<ArrayBuffer> | null, done: TransformCallback): void {
    this.#waiting = answer => {
      this.#waiting = undefined
      if ('error' in answer)
        done(new Failure('worker_error', 'The speech could not be made MP3.', { cause: answer.error }))
      else if (answer.byteLength === 0) done()
      else done(null, Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength))
    }
    this.#port.postMessage(samples, samples === null ? [] : [samples.buffer])
  }
}
