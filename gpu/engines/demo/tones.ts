import {
  type ChordVoice,
  chordSamples,
  demoSampleRate,
  frequencyOf,
  markChords,
  marks,
  restChords,
  tonesOf,
} from './chords.ts'
import { type DecodedBytes, findStart, readBytes, type SampleList, silenceLevel } from './tone-detection.ts'

/**
 * Encodes text as tones and decodes it, as a stand-in for speech. Each byte of the UTF-8 text is two chords, one per
 * half; a chord is one of four low tones plus one of four high tones, as in telephone dialling (DTMF). The two halves
 * use different sets of tones, and single tones mark the start and end of a text.
 */

/** Number of samples for a text of `bytes` UTF-8 bytes. */
export const sampleCount = (bytes: number, speed: number): number =>
  chordSamples(speed) * (2 * bytes + markChords.first + markChords.second + markChords.end + 2 * restChords)

/** Encodes a text in pieces of a few milliseconds, in order: 16-bit samples, mono, 24 000 per second. */
export function* encoding(text: string, voice: ChordVoice, speed = 1): Generator<Int16Array<ArrayBuffer>, void> {
  const length = chordSamples(speed)
  const rest = new Int16Array(length * restChords)
  const cache = new Map<number, Int16Array<ArrayBuffer>>()
  const chord = (half: 0 | 1, bits: number): Int16Array<ArrayBuffer> => {
    const key = half * 16 + bits
    let samples = cache.get(key)
    if (!samples) cache.set(key, (samples = sound(voice, tonesOf(half, bits), length)))
    return samples
  }
  yield rest
  yield sound(voice, [marks.first], length * markChords.first)
  yield sound(voice, [marks.second], length * markChords.second)
  for (const byte of new TextEncoder().encode(text)) {
    yield chord(0, byte >> 4)
    yield chord(1, byte & 15)
  }
  yield sound(voice, [marks.first], length * markChords.end)
  yield rest
}

/** Mixes tones, faded in and out over two milliseconds to avoid clicks. */
function sound(voice: ChordVoice, tones: readonly number[], length: number): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(length)
  const fade = (2 * demoSampleRate) / 1000
  const loudness = 14_000 / (1 + voice.overtone)
  for (let at = 0; at < length; at++) {
    let sum = 0
    for (const tone of tones) {
      const angle = (2 * Math.PI * frequencyOf(voice, tone) * at) / demoSampleRate
      sum += Math.sin(angle) + voice.overtone * Math.sin(2 * angle)
    }
    const edge = Math.min(1, at / fade, (length - 1 - at) / fade)
    samples[at] = Math.round(loudness * Math.sin((edge * Math.PI) / 2) ** 2 * sum)
  }
  return samples
}

/** A part of a decoded text. Times are in seconds from the start of the audio. */
export interface DecodedPart {
  start: number
  end: number
  text: string
}
export interface DecodedText {
  /** Empty if no text was found. */
  text: string
  /** Sentences, split if they are longer than `longestSegment` characters. */
  segments: DecodedPart[]
  words: DecodedPart[]
  /** The voice of the first text. */
  voice?: ChordVoice
}

/**
 * Decodes the output of `encoding`, which may be quieter, resampled, compressed, and have silence around it. In steps of a
 * few milliseconds, so that the caller can do other work in between. Yields a function that returns the text so far.
 */
export function* decoding(samples: SampleList, sampleRate: number): Generator<(() => string) | undefined, DecodedText> {
  const decoded: DecodedText = { text: '', segments: [], words: [] }
  const sound = { samples, rate: sampleRate, floor: yield* silenceLevel(samples) }
  let from = 0
  for (;;) {
    const start = yield* findStart(sound, from)
    if (!start) return decoded
    const before = decoded.text ? `${decoded.text}\n` : ''
    const decodedBytes = yield* readBytes(sound, start, bytes => before + wholeWords(bytes))
    if (decodedBytes.bytes.length > 0) decoded.voice ??= start.voice
    append(decoded, decodedBytes)
    from = decodedBytes.end
  }
}

/** Returns the text of the bytes up to the last space, after which a word or a character may be incomplete. */
function wholeWords(bytes: readonly number[]): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes))
  return text.slice(0, text.lastIndexOf(' ') + 1)
}

const sentenceEnd = /[.!?。！？…]["'”’)\]]*\s+|\n+/g
const longestSegment = 200

function append(decoded: DecodedText, { bytes, start, chord, rate }: DecodedBytes): void {
  if (bytes.length === 0) return
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes))
  // Byte offset of each character; after invalid bytes it may be off by a few.
  const offsets = new Float64Array(text.length + 1)
  let byte = 0
  for (let at = 0; at < text.length; at++) {
    offsets[at] = byte
    const code = text.charCodeAt(at)
    byte += code < 0x80 ? 1 : code < 0x800 ? 2 : code >= 0xd800 && code < 0xe000 ? 2 : 3
  }
  offsets[text.length] = byte
  const timeOf = (character: number) => start / rate + Math.min(offsets[character]!, bytes.length) * 2 * chord
  const part = (from: number, to: number): DecodedPart => ({
    start: timeOf(from),
    end: timeOf(to),
    text: text.slice(from, to),
  })
  for (const [from, to] of sentences(text)) decoded.segments.push(part(from, to))
  for (const { index, 0: word } of text.matchAll(/\S+/g)) decoded.words.push(part(index, index + word.length))
  decoded.text += (decoded.text ? '\n' : '') + text
}

function sentences(text: string): [number, number][] {
  const found: [number, number][] = []
  let from = 0
  const addSentence = (to: number) => {
    while (to - from > longestSegment) {
      const space = text.lastIndexOf(' ', from + longestSegment)
      const middle = space > from ? space + 1 : from + longestSegment
      found.push([from, middle])
      from = middle
    }
    if (to > from) found.push([from, to])
    from = to
  }
  for (const { index, 0: mark } of text.matchAll(sentenceEnd)) addSentence(index + mark.length)
  addSentence(text.length)
  return found
}
