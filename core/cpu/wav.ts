/** Where the samples of a WAV file lie, and what they are. */
export interface WavFacts {
  rate: number
  channels: number
  /** Bytes of one sample of one channel. */
  width: number
  float: boolean
  start: number
  /** Bytes; files that were written to a pipe say too much or nothing. */
  length: number
}

/**
 * The head of a WAV file; a sentence's end where it is none that is read here. Pure. Everything in it is what a stranger
 * wrote: what does not fit together is refused, because sizes follow from it.
 */
export function readWavHead(head: Buffer, fileBytes: number): WavFacts | string {
  let at = 12
  let format: Omit<WavFacts, 'start' | 'length'> | undefined
  while (at + 8 <= head.length) {
    const [name, size] = [head.toString('latin1', at, at + 4), head.readUInt32LE(at + 4)]
    const start = at + 8
    if (name === 'data') {
      if (!format) return 'says nothing of its samples before they begin'
      const there = fileBytes - start
      return { ...format, start, length: size === 0 || size > there ? there : size }
    }
    if (name === 'fmt ') {
      if (size < 16 || start + size > head.length) return 'is cut short'
      const read = formatOf(head.subarray(start, start + size))
      if (typeof read === 'string') return read
      format = read
    }
    at = start + size + (size % 2)
  }
  return 'has no samples where they are looked for'
}

function formatOf(chunk: Buffer): Omit<WavFacts, 'start' | 'length'> | string {
  const tag = chunk.readUInt16LE(0)
  const extensible = tag === 0xfffe && chunk.length >= 40
  const kind = extensible ? chunk.readUInt16LE(24) : tag
  const [channels, rate] = [chunk.readUInt16LE(2), chunk.readUInt32LE(4)]
  const [block, bits] = [chunk.readUInt16LE(12), chunk.readUInt16LE(14)]
  const float = kind === 3
  if (kind !== 1 && !float) return 'is packed in a way that only ffmpeg reads'
  if (!(float ? [32, 64] : [8, 16, 24, 32]).includes(bits)) return `has samples of ${bits} bits`
  if (channels < 1 || channels > 8) return `has ${channels} channels`
  if (block !== channels * (bits / 8)) return 'has a head that contradicts itself'
  return { rate, channels, width: bits / 8, float }
}

/** Samples of all channels, from -1 to 1; `bytes` is a whole number of them. */
export function wavSamples(bytes: Buffer, { channels, width, float }: WavFacts): Float32Array[] {
  const frames = bytes.length / (width * channels)
  const samples = Array.from({ length: channels }, () => new Float32Array(frames))
  for (let at = 0, frame = 0; frame < frames; frame++)
    for (let channel = 0; channel < channels; channel++, at += width)
      samples[channel]![frame] = float
        ? width === 4
          ? bytes.readFloatLE(at)
          : bytes.readDoubleLE(at)
        : width === 1
          ? (bytes[at]! - 128) / 128
          : bytes.readIntLE(at, width) / 2 ** (8 * width - 1)
  return samples
}
