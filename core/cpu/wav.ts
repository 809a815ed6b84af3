/** Enough for what writers of WAV put before the samples, bytes. */
export const wavHeadBytes = 64 << 10

/** Position and format of the samples in a WAV file. */
export interface WavFacts {
  rate: number
  channels: number
  /** Bytes of one sample of one channel. */
  width: number
  /** Bits of a sample that count; fewer than its bytes have in files of 24 bits in 32. */
  bits: number
  float: boolean
  start: number
  /** Bytes, at most up to the end of the file: the header of files that were written to a pipe has a wrong length. */
  length: number
}

/**
 * Reads the header of a WAV file. Returns the end of a sentence that begins with "The audio" if the file is not
 * supported. Pure. The header is untrusted and sizes are computed from it, so contradictions are refused.
 */
export function readWavHead(head: Buffer, fileBytes: number): WavFacts | string {
  let at = 12
  let format: Omit<WavFacts, 'start' | 'length'> | undefined
  while (at + 8 <= head.length) {
    const [name, size] = [head.toString('latin1', at, at + 4), head.readUInt32LE(at + 4)]
    const start = at + 8
    if (name === 'data') {
      if (!format) return 'has no format before its samples'
      const available = fileBytes - start
      return { ...format, start, length: size === 0 || size > available ? available : size }
    }
    if (name === 'fmt ') {
      if (size < 16 || start + size > head.length) return 'is cut short'
      const read = formatOf(head.subarray(start, start + size))
      if (typeof read === 'string') return read
      format = read
    }
    at = start + size + (size % 2)
  }
  return 'has no samples in its first part'
}

function formatOf(chunk: Buffer): Omit<WavFacts, 'start' | 'length'> | string {
  const tag = chunk.readUInt16LE(0)
  const extensible = tag === 0xfffe && chunk.length >= 40
  const kind = extensible ? chunk.readUInt16LE(24) : tag
  const [channels, rate] = [chunk.readUInt16LE(2), chunk.readUInt32LE(4)]
  const [block, stated] = [chunk.readUInt16LE(12), chunk.readUInt16LE(14)]
  const bits = (extensible && chunk.readUInt16LE(18)) || stated
  const float = kind === 3
  if (kind !== 1 && !float) return 'has a WAV encoding that only ffmpeg decodes'
  if (!(float ? [32, 64].includes(bits) : bits >= 8 && bits <= 32)) return `has samples of ${bits} bits`
  if (channels < 1 || channels > 8) return `has ${channels} channels`
  const width = block / channels
  const fits = float ? width === bits / 8 : Number.isInteger(width) && width <= 4 && bits <= 8 * width
  return fits ? { rate, channels, width, bits, float } : 'has a contradictory header'
}

/**
 * Whether samples have whole bytes that do not count, such as 24 bits in 32. ffmpeg decodes such files to silence or
 * noise. Pure.
 */
export const isPadded = ({ width, bits, float }: Pick<WavFacts, 'width' | 'bits' | 'float'>): boolean =>
  !float && Math.ceil(bits / 8) < width

/**
 * Returns by how much padded samples are multiplied to fill their bytes: the format has the bits that count at the top,
 * but some programs write them at the bottom. Undefined if these samples are all zero. Pure.
 */
export function paddingFactor(bytes: Buffer, { width, bits }: WavFacts): number | undefined {
  const factor = 2 ** (8 * width - bits)
  let [zero, small, coarse] = [true, true, true]
  for (let at = 0; at < bytes.length; at += width) {
    const sample = bytes.readIntLE(at, width)
    zero &&= sample === 0
    small &&= Math.abs(sample) <= 2 ** (bits - 1)
    coarse &&= sample % factor === 0
  }
  if (zero) return undefined
  return small && !coarse ? factor : 1
}

/**
 * Returns the samples of each channel, from -1 to 1. `bytes` must be a whole number of frames; integers are multiplied
 * by `factor`.
 */
export function wavSamples(bytes: Buffer, { channels, width, float }: WavFacts, factor = 1): Float32Array[] {
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
          : (factor * bytes.readIntLE(at, width)) / 2 ** (8 * width - 1)
  return samples
}
