import {
  type ChordVoice,
  frequencyOf,
  longestMs,
  markChords,
  marks,
  shortestMs,
  tonesOfHalf,
  voices,
} from './chords.ts'

/** Samples of any scale, mono. */
export type SampleList = ArrayLike<number>

export interface Recording {
  samples: SampleList
  rate: number
  /** Power below which the audio counts as silence. */
  floor: number
}

export interface DetectedStart {
  voice: ChordVoice
  /** Position in samples, as everywhere in this file; may be fractional. */
  at: number
  chord: number
}

export interface DecodedBytes {
  bytes: number[]
  start: number
  end: number
  /** Duration of a chord in seconds. */
  chord: number
  rate: number
}

const pieceSamples = 200_000

export function* silenceLevel(samples: SampleList): Generator<undefined, number> {
  let peak = 0
  for (let at = 0; at < samples.length; at++) {
    peak = Math.max(peak, Math.abs(samples[at]!))
    if (at % pieceSamples === 0) yield
  }
  return (peak * 0.02) ** 2
}

/** Share of the power between two positions that is in the tone: 1 for the pure tone, 0 in silence. */
function shareOf({ samples, rate, floor }: Recording, hz: number, from: number, to: number): number {
  const first = Math.max(0, Math.round(from))
  const last = Math.min(samples.length, Math.round(to))
  const count = last - first
  if (count < 8) return 0
  const factor = 2 * Math.cos((2 * Math.PI * hz) / rate)
  let [one, two, power] = [0, 0, 0]
  for (let at = first; at < last; at++) {
    const sample = samples[at]!
    const next = sample + factor * one - two
    two = one
    one = next
    power += sample * sample
  }
  if (power / count <= floor) return 0
  return Math.min(1, (2 * (one * one + two * two - factor * one * two)) / (count * power))
}

const hopMs = 2
const windowMs = 8
const isMark = 0.6

/** Finds the next start: the first mark, long enough, then the second mark, whose length determines the speed. */
export function* findStart(sound: Recording, from: number): Generator<undefined, DetectedStart | undefined> {
  const hop = (hopMs * sound.rate) / 1000
  const window = (windowMs * sound.rate) / 1000
  const runs = voices.map(() => 0)
  const minRun = (shortestMs * markChords.first - 2 * windowMs) / hopMs
  let windows = 0
  for (let at = from; at + window <= sound.samples.length; at += hop) {
    if (++windows % 256 === 0) yield
    for (const [index, voice] of voices.entries()) {
      if (shareOf(sound, frequencyOf(voice, marks.first), at, at + window) >= isMark) {
        runs[index]!++
        continue
      }
      const start = runs[index]! >= minRun ? measure(sound, voice, at, at + window) : undefined
      runs[index] = 0
      if (start) return start
    }
  }
  return undefined
}

/** Measures the second mark, which starts between `from` and `to`: returns its end and the duration of a chord. */
function measure(sound: Recording, voice: ChordVoice, from: number, to: number): DetectedStart | undefined {
  const ms = sound.rate / 1000
  const window = windowMs * ms
  const [first, second] = [frequencyOf(voice, marks.first), frequencyOf(voice, marks.second)]
  const share = (hz: number, middle: number) => shareOf(sound, hz, middle - window / 2, middle + window / 2)
  // The edge is where both tones are equally strong in a window centred on it.
  let begins = from
  const lastBegin = to + window
  while (begins < lastBegin && share(second, begins) <= share(first, begins)) begins += ms / 4
  if (begins >= lastBegin) return undefined
  let ends = begins + shortestMs * markChords.second * 0.5 * ms
  const lastEnd = begins + longestMs * markChords.second * 1.1 * ms
  while (ends < lastEnd && share(second, ends) >= isMark) ends += ms / 4
  if (ends >= lastEnd) return undefined
  // The mark no longer dominates the window; it ends where its amplitude has halved.
  const before = powerOf(sound, second, ends - window * 2, ends - window)
  while (ends < lastEnd && powerOf(sound, second, ends - window / 2, ends + window / 2) > before / 4) ends += ms / 4
  const chordMs = Math.round((ends - begins) / ms / markChords.second)
  if (chordMs < shortestMs || chordMs > longestMs) return undefined
  // Measure from the first edge, which is the more precise one.
  return { voice, at: begins + chordMs * markChords.second * ms, chord: chordMs * ms }
}

function powerOf(sound: Recording, hz: number, from: number, to: number): number {
  let power = 0
  for (let at = Math.max(0, Math.round(from)); at < Math.min(sound.samples.length, Math.round(to)); at++)
    power += sound.samples[at]! ** 2
  return shareOf(sound, hz, from, to) * power
}

/**
 * Reads bytes from a start until the end mark, silence, or anything that is not a chord. Yields a function that returns
 * the text of the bytes so far, by `textOf`.
 */
export function* readBytes(
  sound: Recording,
  { voice, at, chord }: DetectedStart,
  textOf: (bytes: readonly number[]) => string,
): Generator<() => string, DecodedBytes> {
  const bytes: number[] = []
  let position = at
  const read = (half: 0 | 1): number | undefined => {
    // Use the middle of the chord: its edges are faded and imprecisely measured.
    const [from, to] = [position + chord * 0.12, position + chord * 0.88]
    const strongest = (tones: readonly number[]): [number, number] => {
      let [best, bestShare] = [0, -1]
      for (const [bits, tone] of tones.entries()) {
        const share = shareOf(sound, frequencyOf(voice, tone), from, to)
        if (share > bestShare) [best, bestShare] = [bits, share]
      }
      return [best, bestShare]
    }
    const [low, lowShare] = strongest(tonesOfHalf[half].low)
    const [high, highShare] = strongest(tonesOfHalf[half].high)
    position += chord
    return lowShare + highShare < 0.4 ? undefined : low * 4 + high
  }
  for (;;) {
    if (bytes.length % 16 === 0) yield () => textOf(bytes)
    const started = position
    const upper = read(0)
    const lower = upper === undefined ? undefined : read(1)
    if (upper === undefined || lower === undefined)
      return { bytes, start: at, end: started, chord: chord / sound.rate, rate: sound.rate }
    bytes.push(upper * 16 + lower)
  }
}
