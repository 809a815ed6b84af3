import { Transform } from 'node:stream'
import { engineFault } from './protocols/answer.ts'

export interface WavFacts {
  channels: number
  /** Samples a second. */
  rate: number
}

/** The head of a WAV file of 16-bit samples, mono; `bytes` of samples follow, as many as may be said where nobody knows. */
export function wavHead(rate: number, bytes: number): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(Math.min(36 + bytes, 0xffffffff), 4)
  head.write('WAVEfmt ', 8, 'latin1')
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate * 2, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36, 'latin1')
  head.writeUInt32LE(Math.min(bytes, 0xffffffff), 40)
  return head
}

/** The longest that may stand before the samples. */
const longestHead = 64 << 10

/**
 * Where the samples begin and what they are; undefined while more of the file is needed to know. Lengths that writers of
 * streams leave open (0, or all ones) are of the samples only, which are last. Throws Failure `worker_error`.
 */
export function readWavHead(bytes: Buffer): (WavFacts & { from: number; bytes: number }) | undefined {
  if (bytes.length >= 12 && (tag(bytes, 0) !== 'RIFF' || tag(bytes, 8) !== 'WAVE'))
    throw engineFault('something that is no WAV file where one was asked for')
  if (bytes.length > longestHead) throw engineFault('a WAV file without samples')
  let facts: WavFacts | undefined
  for (let at = 12; at + 8 <= bytes.length; ) {
    const [name, length] = [tag(bytes, at), bytes.readUInt32LE(at + 4)]
    if (name === 'data') {
      if (!facts) throw engineFault('a WAV file that does not say what its samples are')
      const open = length === 0 || length >= 0x7fffff00
      return { ...facts, from: at + 8, bytes: open ? Number.POSITIVE_INFINITY : length }
    }
    if (name === 'fmt ') {
      if (at + 24 > bytes.length) return undefined
      facts = formatAt(bytes, at + 8, length)
    }
    at += 8 + length + (length % 2)
  }
  return undefined
}

const tag = (bytes: Buffer, at: number): string => bytes.toString('latin1', at, at + 4)

function formatAt(bytes: Buffer, at: number, length: number): WavFacts {
  const [kind, channels, rate, bits] = [
    bytes.readUInt16LE(at),
    bytes.readUInt16LE(at + 2),
    bytes.readUInt32LE(at + 4),
    bytes.readUInt16LE(at + 14),
  ]
  // 0xfffe says that the kind stands further on; with 16 bits there is only the one.
  const plain = kind === 1 || (kind === 0xfffe && length >= 40)
  if (!plain || bits !== 16 || channels < 1 || channels > 2 || rate < 4000 || rate > 192_000)
    throw engineFault(
      `WAV of kind ${kind} with ${channels} channels of ${bits} bits at ${rate} Hz, which cannot be converted`,
    )
  return { channels, rate }
}

/** Passes a WAV file on as it is and tells how long it is. */
export class WavLength extends Transform {
  #head: Buffer | undefined = Buffer.alloc(0)
  #facts: (WavFacts & { from: number; bytes: number }) | undefined
  #bytes = 0

  /** Seconds that have passed through; undefined where the file does not say what its samples are. */
  get seconds(): number | undefined {
    if (!this.#facts) return undefined
    const { from, bytes, channels, rate } = this.#facts
    return Math.max(0, Math.min(bytes, this.#bytes - from)) / 2 / channels / rate
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: (error: null, chunk: Buffer) => void): void {
    this.#bytes += chunk.length
    if (this.#head) {
      this.#head = Buffer.concat([this.#head, chunk])
      try {
        this.#facts = readWavHead(this.#head)
        if (this.#facts) this.#head = undefined
      } catch {
        // Whoever converts it knows more kinds, or says what is wrong.
        this.#head = undefined
      }
    }
    done(null, chunk)
  }
}

/** Takes the head off a WAV file and gives its samples in mono, 16 bits, little-endian. */
export class WavSamples extends Transform {
  facts: WavFacts | undefined
  #head = Buffer.alloc(0)
  #left = 0
  #odd = Buffer.alloc(0)
  #samples = 0

  /** Seconds that have passed through. */
  get seconds(): number {
    return this.facts ? this.#samples / this.facts.rate : 0
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    try {
      if (this.facts) this.#pass(chunk)
      else {
        this.#head = Buffer.concat([this.#head, chunk])
        const head = readWavHead(this.#head)
        if (head) {
          this.facts = { channels: head.channels, rate: head.rate }
          this.#left = head.bytes
          this.emit('facts', this.facts)
          this.#pass(this.#head.subarray(head.from))
          this.#head = Buffer.alloc(0)
        }
      }
      done()
    } catch (thrown) {
      done(thrown as Error)
    }
  }

  override _flush(done: (error?: Error | null) => void): void {
    done(this.facts ? null : engineFault('a WAV file that ends before its samples'))
  }

  #pass(chunk: Buffer): void {
    const { channels } = this.facts!
    const own = chunk.subarray(0, Math.max(0, Math.min(chunk.length, this.#left)))
    this.#left -= own.length
    const all = this.#odd.length > 0 ? Buffer.concat([this.#odd, own]) : own
    const count = Math.floor(all.length / (2 * channels))
    this.#odd = Buffer.from(all.subarray(count * 2 * channels))
    this.#samples += count
    if (count === 0) return
    if (channels === 1) return void this.push(all.subarray(0, count * 2))
    const mono = Buffer.allocUnsafe(count * 2)
    for (let at = 0; at < count; at++)
      mono.writeInt16LE((all.readInt16LE(at * 4) + all.readInt16LE(at * 4 + 2)) >> 1, at * 2)
    this.push(mono)
  }
}
