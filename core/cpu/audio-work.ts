import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { loadAudioDecoders } from '../assets.ts'
import { Failure } from '../failure.ts'
import { diskFailure } from '../files/write.ts'
import { type AudioKind, audioKindOf } from './audio-kind.ts'
import { openResampler } from './resample.ts'
import type * as AudioDecoders from './sound-decoders.ts'
import { readWavHead, wavSamples } from './wav.ts'

/** What a sound may come to. */
export interface AudioLimits {
  /** How long it may last. */
  seconds: number
  /** Bytes of the samples that are written. What a decoder gives on the way may be eight times that: nobody holds it. */
  bytes: number
  /** Samples a second that are written. */
  rate: number
  /** Milliseconds that it may take. */
  ms: number
}

/** A sound that was decoded: so many samples were written. */
export interface DecodedSamples {
  samples: number
}

interface Piece {
  channelData: Float32Array[]
  sampleRate: number
}

/**
 * So little goes into a decoder at once, because of some formats a few bytes come to a megabyte: what has come out is
 * counted before more goes in.
 */
const pieceBytes = 2 << 10
const headBytes = 64 << 10
/** An hour in two channels of 96,000 samples a second comes to five times what is written of it. */
const maxDecoded = 8
const rates = { least: 4_000, most: 384_000 }

export const invalidAudio = (what: string): Failure => new Failure('invalid_audio', `The sound ${what}.`)

/**
 * Writes the sound in the file `from` as samples of 16 bits in one channel to the new file `into`. Throws Failure
 * `invalid_audio` for what is none, is damaged, or comes to more than it may; `disk_full`.
 */
export async function decodeAudio(from: string, into: string, bounds: AudioLimits): Promise<DecodedSamples> {
  const source = openSync(from, 'r')
  let target: number | undefined
  try {
    target = openSync(into, 'wx', 0o600)
    const writer = openWriter(target, bounds)
    const head = Buffer.alloc(headBytes)
    const length = readSync(source, head, 0, headBytes, 0)
    const found = audioKindOf(head.subarray(0, length))
    if ('other' in found)
      throw invalidAudio(
        found.other === null
          ? 'is of no kind that is known here'
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

/** Takes pieces of any rate and any number of channels, and counts. */
function openWriter(target: number, bounds: AudioLimits) {
  const waiting = Buffer.alloc(64 << 10)
  const until = performance.now() + bounds.ms
  let held = 0
  let samples = 0
  let taken = 0
  let rate: number | undefined
  let resample: ((piece: Float32Array) => void) | undefined

  const flush = () => {
    // A disk that fills up takes a part first.
    for (let at = 0; at < held; ) at += writeSync(target, waiting, at, held - at)
    held = 0
  }
  const put = (sample: number) => {
    if (++samples > bounds.seconds * bounds.rate)
      throw invalidAudio(`lasts longer than ${bounds.seconds} s, the most here`)
    // What is no number counts as silence.
    const value = Math.max(-32_768, Math.min(32_767, Math.round((sample || 0) * 32_768)))
    held = waiting.writeInt16LE(value, held)
    if (held === waiting.length) flush()
  }

  return {
    samples: () => samples,
    end: flush,
    take({ channelData, sampleRate }: Piece) {
      if (performance.now() >= until) throw invalidAudio(`could not be decoded within ${bounds.ms / 1000} s`)
      const [first] = channelData
      if (!first || first.length === 0) return
      taken += first.length * channelData.length * 2
      if (taken > maxDecoded * bounds.bytes) throw invalidAudio('holds more than can be read of it here')
      if (!(sampleRate >= rates.least && sampleRate <= rates.most))
        throw invalidAudio(`has ${sampleRate} samples a second; ${rates.least} to ${rates.most} are read`)
      if (rate !== undefined && rate !== sampleRate) throw invalidAudio('changes its rate in the middle')
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
  const piece = Buffer.alloc(Math.floor(headBytes / frame) * frame)
  const end = facts.start + facts.length
  for (let at = facts.start; at < end; ) {
    const read = readSync(source, piece, 0, Math.min(piece.length, end - at), at)
    const whole = read - (read % frame)
    if (whole === 0) break
    writer.take({ channelData: wavSamples(piece.subarray(0, whole), facts), sampleRate: facts.rate })
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

/** What a decoder throws is about the file, whatever it says. */
function decoded(work: () => Piece): Piece {
  try {
    return work()
  } catch (cause) {
    throw new Failure('invalid_audio', 'The sound cannot be decoded: its file is damaged or cut short.', { cause })
  }
}
