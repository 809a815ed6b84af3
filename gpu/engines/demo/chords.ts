/** The encoding of text as tones, shared by the encoder and the decoder. */

export interface ChordVoice {
  id: string
  name: string
  /** Frequency of the lowest tone and distance between tones, in Hz. */
  base: number
  step: number
  /** Amplitude of the octave above each tone, relative to the tone. */
  overtone: number
}

export const voices: readonly [ChordVoice, ...ChordVoice[]] = [
  { id: 'alto', name: 'Alto', base: 550, step: 150, overtone: 0 },
  { id: 'bass', name: 'Bass', base: 400, step: 120, overtone: 0.15 },
  { id: 'soprano', name: 'Soprano', base: 700, step: 190, overtone: 0.08 },
]

/** Voices by OpenAI's voice names, so that programs written for OpenAI work unchanged. */
export const openAiVoices: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ['alto', ['alloy', 'coral', 'nova', 'sage', 'marin']],
    ['bass', ['ash', 'cedar', 'echo', 'onyx', 'verse']],
    ['soprano', ['ballad', 'fable', 'shimmer']],
  ].flatMap(([id, names]) => (names as string[]).map(name => [name, id as string])),
)

/** Samples per second of `encode`. */
export const demoSampleRate = 24_000

/** Speed limits: faster tones would be too short to distinguish. */
const speeds = { min: 0.5, max: 2 }

/** Milliseconds of a chord at speed 1. */
const chordMs = 30
export const shortestMs = chordMs / speeds.max
export const longestMs = chordMs / speeds.min

/** The tones of each half of a byte. The halves use different tones, so that adjacent chords always differ. */
export const tonesOfHalf = [
  { low: [0, 2, 4, 6], high: [8, 10, 12, 14] },
  { low: [1, 3, 5, 7], high: [9, 11, 13, 15] },
] as const
export const marks = { first: 16, second: 17 }
/** Length of the marks in chords: `first` then `second` before a text, `end` (the first mark again) after it. */
export const markChords = { first: 4, second: 8, end: 4 }
/** Silence before and after a text, in chords. */
export const restChords = 2

export const frequencyOf = ({ base, step }: ChordVoice, tone: number): number => base + tone * step

/** The tones of a half of a byte: `half` is 0 for the upper four bits and 1 for the lower. */
export const tonesOf = (half: 0 | 1, bits: number): [low: number, high: number] => [
  tonesOfHalf[half].low[bits >> 2]!,
  tonesOfHalf[half].high[bits & 3]!,
]

/** Samples per chord. A chord lasts whole milliseconds, so that the decoder can determine the speed exactly. */
export const chordSamples = (speed: number): number =>
  (Math.round(chordMs / Math.min(speeds.max, Math.max(speeds.min, speed))) * demoSampleRate) / 1000
