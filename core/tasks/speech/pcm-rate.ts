import { Transform, type TransformCallback } from 'node:stream'
import { openResampler } from '../../cpu/resample.ts'

/** Resamples a stream of 16-bit little-endian mono samples. A minute of speech takes about 30 ms. */
export class PcmRate extends Transform {
  #odd = Buffer.alloc(0)
  #out: number[] = []
  #resample: (piece: Float32Array) => void

  constructor(from: number, to: number) {
    super()
    this.#resample = openResampler(from, to, sample => void this.#out.push(sample))
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const all = this.#odd.length > 0 ? Buffer.concat([this.#odd, chunk]) : chunk
    const count = all.length >> 1
    this.#odd = Buffer.from(all.subarray(count * 2))
    const samples = new Float32Array(count)
    for (let at = 0; at < count; at++) samples[at] = all.readInt16LE(at * 2)
    this.#resample(samples)
    const bytes = Buffer.allocUnsafe(this.#out.length * 2)
    this.#out.forEach((sample, at) =>
      bytes.writeInt16LE(Math.max(-32_768, Math.min(32_767, Math.round(sample))), at * 2),
    )
    this.#out = []
    done(null, bytes)
  }
}
