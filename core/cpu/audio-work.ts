import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { loadAudioDecoders } from '../assets.ts'
import { Failure } from '../failure.ts'
import { diskFailure } from '../files/write.ts'
import type * as AudioDecoders from './audio-decoders.ts'
import { type AudioKind, audioKindOf } from './audio-kind.ts'
import { openResampler } from './resample.ts'
import { isPadded, paddingFactor, readWavHead, wavHeadBytes, wavSamples } from './wav.ts'

/** Limits of decoded audio. */
export interface AudioLimits {
  /** Maximum duration. */
  seconds: number
  /** Maximum bytes of written samples. A decoder may give eight times as many, which are never all in memory. */
  bytes: number
  /** Samples a second of the output. */
  rate: number
  /** Maximum time for decoding, milliseconds. */
  ms: number
}

/** How many samples were written. */
export interface DecodedSamples {
  samples: number
}

interface Piece {
  channelData: Float32Array[]
  sampleRate: number
}

/**
 * Bytes that a decoder gets at a time. In some formats a few bytes decode to a megabyte, so the output is counted before
 * the decoder gets more.
 */
const pieceBytes = 2 << 10
/** A decoder may give `bytes` times this. An hour in two channels of 96,000 samples a second gives five times the default. */
const maxDecoded = 8
const rates = { min: 4_000, max: 384_000 }

const invalidAudio = (what: string): Failure => new Failure('invalid_audio', `The audio ${what}.`)

/**
 * Decodes the audio file `from` to 16-bit samples in one channel and writes them to the new file `into`. Throws Failure
 * `invalid_audio` if the file is not audio, is damaged or exceeds the limits; `disk_full`.
 */
export async function decodeAudio(from: string, into: string, bounds: AudioLimits): Promise<DecodedSamples> {
  const source = openSync(from, 'r')
  let target: number | undefined
  try {
    target = openSync(into, 'wx', 0o600)
    const writer = openWriter(target, bounds)
    const head = Buffer.alloc(wavHeadBytes)
    const length = readSync(source, head, 0, wavHeadBytes, 0)
    const found = audioKindOf(head.subarray(0, length))
    if ('other' in found)
      throw invalidAudio(
        found.other === null
          ? 'has an unknown format'
          : `is ${found.other}, which needs ffmpeg on this server; send WAV, MP3, FLAC or Ogg`,
      )
    if (found.kind === 'wav') readWav(source, head.subarray(0, length), writer)
    else await readPacked(found.kind, source, writer)
    if (writer.samples() === 0) throw invalidAudio('is empty, damaged or cut short')
    writer.end()
    return { samples: writer.samples() }
  } catch (thrown) {
    throw diskFailure(thrown)
  } finally {
    closeSync(source)
    if (target !== undefined) closeSync(target)
  }
}

/** Writes pieces of any rate and any number of channels, and counts the samples. */
function openWriter(target: number, bounds: AudioLimits) {
  const buffer = Buffer.alloc(64 << 10)
  const deadline = performance.now() + bounds.ms
  let buffered = 0
  let samples = 0
  let decodedBytes = 0
  let rate: number | undefined
  let resample: ((piece: Float32Array) => void) | undefined

  const flush = () => {
    // Writes can be partial when the disk fills up.
    for (let at = 0; at < buffered; ) at += writeSync(target, buffer, at, buffered - at)
    buffered = 0
  }
  const put = (sample: number) => {
    if (++samples > bounds.seconds * bounds.rate)
      throw invalidAudio(`lasts longer than ${bounds.seconds} s, the maximum`)
    // NaN counts as silence.
    const value = Math.max(-32_768, Math.min(32_767, Math.round((sample || 0) * 32_768)))
    buffered = buffer.writeInt16LE(value, buffered)
    if (buffered === buffer.length) flush()
  }

  return {
    samples: () => samples,
    end: flush,
    take({ channelData, sampleRate }: Piece) {
      if (performance.now() >= deadline) throw invalidAudio(`could not be decoded within ${bounds.ms / 1000} s`)
      const [first] = channelData
      if (!first || first.length === 0) return
      decodedBytes += first.length * channelData.length * 2
      if (decodedBytes > maxDecoded * bounds.bytes) throw invalidAudio('decodes to more data than is allowed')
      if (!(sampleRate >= rates.min && sampleRate <= rates.max))
        throw invalidAudio(`has ${sampleRate} samples a second; ${rates.min} to ${rates.max} are supported`)
      if (rate !== undefined && rate !== sampleRate) throw invalidAudio('changes its sample rate in the middle')
      rate = sampleRate
      resample ??= openResampler(sampleRate, bounds.rate, put)
      resample(mixed(channelData))
    },
  }
}
type Writer = ReturnType<typeof openWriter>

function mixed(channels: readonly Float32Array[]): Float32Array {
  const [first] = channels
  if (channels.length === 1) return first!
  const mono = new Float32Array(first!.length)
  for (const channel of channels) for (let at = 0; at < mono.length; at++) mono[at]! += channel[at]! / channels.length
  return mono
}

function readWav(source: number, head: Buffer, writer: Writer): void {
  const facts = readWavHead(head, fstatSync(source).size)
  if (typeof facts === 'string') throw invalidAudio(facts)
  const frame = facts.width * facts.channels
  const piece = Buffer.alloc(Math.floor(wavHeadBytes / frame) * frame)
  const end = facts.start + facts.length
  let factor = isPadded(facts) ? undefined : 1
  for (let at = facts.start; at < end; ) {
    const read = readSync(source, piece, 0, Math.min(piece.length, end - at), at)
    const whole = read - (read % frame)
    if (whole === 0) break
    const samples = piece.subarray(0, whole)
    factor ??= paddingFactor(samples, facts)
    writer.take({ channelData: wavSamples(samples, facts, factor), sampleRate: facts.rate })
    at += whole
  }
}

async function readPacked(kind: Exclude<AudioKind, 'wav'>, source: number, writer: Writer): Promise<void> {
  const decoders = await loadAudioDecoders<typeof AudioDecoders>()
  const decoder = await decoders[kind]()
  const piece = Buffer.alloc(pieceBytes)
  try {
    for (let at = 0; ; ) {
      const read = readSync(source, piece, 0, pieceBytes, at)
      if (read === 0) break
      at += read
      writer.take(decoded(() => decoder.decode(new Uint8Array(piece.subarray(0, read)))))
    }
    const { flush } = decoder as { flush?: () => Piece }
    if (flush) writer.take(decoded(() => flush.call(decoder)))
  } finally {
    decoder.free()
  }
}

/** Any error of a decoder means that the file is bad. */
function decoded(work: () => Piece): Piece {
  try {
    return work()
  } catch (cause) {
    throw new Failure('invalid_audio', 'The audio cannot be decoded: its file is damaged or cut short.', { cause })
  }
}
