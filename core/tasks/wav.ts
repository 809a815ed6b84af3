import { Transform } from 'node:stream'
import { sampleRate } from '../media/audio-decoder.ts'
import type { Media, MediaInput, MediaSender } from '../media/media.ts'
import { engineFault } from './protocols/answer.ts'

interface EngineWavFacts {
  channels: number
  /** Samples a second. */
  rate: number
}

/** Returns the header of a WAV file of 16-bit samples, mono. Pass infinite `bytes` if their number is not known. */
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

/** Maximum bytes before the samples. */
const longestHead = 64 << 10

/**
 * Returns the position and format of the samples; undefined while more bytes are needed. Writers of streams leave the
 * length of the samples open (0, or all ones); then the samples are the rest of the file. Throws Failure `worker_error`.
 */
export function engineWavSamples(bytes: Buffer): (EngineWavFacts & { from: number; bytes: number }) | undefined {
  if (bytes.length >= 12 && (tag(bytes, 0) !== 'RIFF' || tag(bytes, 8) !== 'WAVE'))
    throw engineFault('something that is not a WAV file, although WAV was requested')
  if (bytes.length > longestHead) throw engineFault('a WAV file without samples')
  let facts: EngineWavFacts | undefined
  for (let at = 12; at + 8 <= bytes.length; ) {
    const [name, length] = [tag(bytes, at), bytes.readUInt32LE(at + 4)]
    if (name === 'data') {
      if (!facts) throw engineFault('a WAV file without the format of its samples')
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

function formatAt(bytes: Buffer, at: number, length: number): EngineWavFacts {
  const [kind, channels, rate, bits] = [
    bytes.readUInt16LE(at),
    bytes.readUInt16LE(at + 2),
    bytes.readUInt32LE(at + 4),
    bytes.readUInt16LE(at + 14),
  ]
  // 0xfffe means that the format is in the extension; with 16 bits it can only be PCM.
  const plain = kind === 1 || (kind === 0xfffe && length >= 40)
  if (!plain || bits !== 16 || channels < 1 || channels > 2 || rate < 4000 || rate > 192_000)
    throw engineFault(
      `WAV of kind ${kind} with ${channels} channels of ${bits} bits at ${rate} Hz, which cannot be converted`,
    )
  return { channels, rate }
}

/** Passes a WAV file on unchanged and measures its duration. */
export class WavLength extends Transform {
  #head: Buffer | undefined = Buffer.alloc(0)
  #facts: (EngineWavFacts & { from: number; bytes: number }) | undefined
  #bytes = 0

  /** Seconds that have passed through; undefined if the format of the samples is not known. */
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
        this.#facts = engineWavSamples(this.#head)
        if (this.#facts) this.#head = undefined
      } catch {
        // The converter supports more formats, or reports the error.
        this.#head = undefined
      }
    }
    done(null, chunk)
  }
}

/** Removes the header of a WAV file and outputs its samples in mono, 16 bits, little-endian. */
export class WavSamples extends Transform {
  facts: EngineWavFacts | undefined
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
        const head = engineWavSamples(this.#head)
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

/**
 * Resolves with short audio as a data: URL of WAV, for an engine that gets it inside its request. Rejects with Failure
 * that names the field.
 */
export async function shortAudioUrl(
  media: Pick<Media, 'samples'>,
  sender: MediaSender,
  { field, value, maxSeconds }: { field: string; value: MediaInput; maxSeconds: number },
): Promise<string> {
  const samples = await media.samples(sender, field, value, maxSeconds)
  const wav = Buffer.concat([wavHead(sampleRate, samples.length), samples])
  return `data:audio/wav;base64,${wav.toString('base64')}`
}
