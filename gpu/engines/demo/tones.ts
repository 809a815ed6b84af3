import { chordSamples, frequencyOf, markChords, marks, restChords, sampleRate, tonesOf, type Voice } from './chords.ts'
import { type DecodedBytes, findStart, quiet, readBytes, type Samples } from './tone-detection.ts'

/**
 * Text as tones, and back: a toy in the place of speech. Each byte of the UTF-8 text is two chords, one for each half;
 * a chord is one of four low tones with one of four high ones, as on a telephone. First and second halves take their
 * tones from different sets, and single tones mark where a text starts and ends.
 */

/** How many samples a text of so many UTF-8 bytes has. */
export const sampleCount = (bytes: number, speed: number): number =>
  chordSamples(speed) * (2 * bytes + markChords.first + markChords.second + markChords.end + 2 * restChords)

/** The sound of a text in pieces of a few milliseconds, in order: 16-bit samples, mono, 24 000 a second. */
export function* encoding(text: string, voice: Voice, speed = 1): Generator<Int16Array<ArrayBuffer>, void> {
  const length = chordSamples(speed)
  const rest = new Int16Array(length * restChords)
  const made = new Map<number, Int16Array<ArrayBuffer>>()
  const chord = (half: 0 | 1, bits: number): Int16Array<ArrayBuffer> => {
    const key = half * 16 + bits
    let samples = made.get(key)
    if (!samples) made.set(key, (samples = sound(voice, tonesOf(half, bits), length)))
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

/** The same in one piece. */
export function encode(text: string, voice: Voice, speed = 1): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(sampleCount(Buffer.byteLength(text), speed))
  let at = 0
  for (const piece of encoding(text, voice, speed)) {
    samples.set(piece, at)
    at += piece.length
  }
  return samples
}

/** Tones together, faded in and out over two milliseconds so that nothing clicks. */
function sound(voice: Voice, tones: readonly number[], length: number): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(length)
  const fade = (2 * sampleRate) / 1000
  const loudness = 14_000 / (1 + voice.overtone)
  for (let at = 0; at < length; at++) {
    let sum = 0
    for (const tone of tones) {
      const angle = (2 * Math.PI * frequencyOf(voice, tone) * at) / sampleRate
      sum += Math.sin(angle) + voice.overtone * Math.sin(2 * angle)
    }
    const edge = Math.min(1, at / fade, (length - 1 - at) / fade)
    samples[at] = Math.round(loudness * Math.sin((edge * Math.PI) / 2) ** 2 * sum)
  }
  return samples
}

/** A part of what was heard. Times are in seconds from the start of the sound. */
export interface DecodedPart {
  start: number
  end: number
  text: string
}
export interface DecodedText {
  /** Empty where nothing was said in tones. */
  text: string
  /** Sentences, or what was said in one piece. */
  segments: DecodedPart[]
  words: DecodedPart[]
}

/** What `encode` said, out of a sound that may be quieter, resampled, compressed, and have silence around it. */
export function decode(samples: Samples, sampleRate: number): DecodedText {
  const steps = decoding(samples, sampleRate)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** The same in steps of a few milliseconds of work, for those who must do other things in between. */
export function* decoding(samples: Samples, sampleRate: number): Generator<void, DecodedText> {
  const heard: DecodedText = { text: '', segments: [], words: [] }
  const sound = { samples, rate: sampleRate, floor: yield* quiet(samples) }
  let from = 0
  for (;;) {
    const start = yield* findStart(sound, from)
    if (!start) return heard
    const decodedBytes = yield* readBytes(sound, start)
    append(heard, decodedBytes)
    from = decodedBytes.end
  }
}

const sentenceEnd = /[.!?。！？…]["'”’)\]]*\s+|\n+/g
const longestSegment = 200

/** Adds what was said in one piece, cut into sentences and words, with their times. */
function append(heard: DecodedText, { bytes, start, chord, rate }: DecodedBytes): void {
  if (bytes.length === 0) return
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes))
  // Where each character of the text begins among the bytes; damaged ones may be off by a few.
  const places = new Float64Array(text.length + 1)
  let byte = 0
  for (let at = 0; at < text.length; at++) {
    places[at] = byte
    const code = text.charCodeAt(at)
    byte += code < 0x80 ? 1 : code < 0x800 ? 2 : code >= 0xd800 && code < 0xe000 ? 2 : 3
  }
  places[text.length] = byte
  const timeOf = (character: number) => start / rate + Math.min(places[character]!, bytes.length) * 2 * chord
  const part = (from: number, to: number): DecodedPart => ({
    start: timeOf(from),
    end: timeOf(to),
    text: text.slice(from, to),
  })
  for (const [from, to] of sentences(text)) heard.segments.push(part(from, to))
  for (const { index, 0: word } of text.matchAll(/\S+/g)) heard.words.push(part(index, index + word.length))
  heard.text += (heard.text ? '\n' : '') + text
}

function sentences(text: string): [number, number][] {
  const found: [number, number][] = []
  let from = 0
  const cut = (to: number) => {
    while (to - from > longestSegment) {
      const space = text.lastIndexOf(' ', from + longestSegment)
      const middle = space > from ? space + 1 : from + longestSegment
      found.push([from, middle])
      from = middle
    }
    if (to > from) found.push([from, to])
    from = to
  }
  for (const { index, 0: mark } of text.matchAll(sentenceEnd)) cut(index + mark.length)
  cut(text.length)
  return found
}
