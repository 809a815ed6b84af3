/** What tones stand for, for those who make them and those who listen. */

export interface Voice {
  id: string
  name: string
  /** The lowest of its tones and the distance between them, in Hz. */
  base: number
  step: number
  /** How loud the octave above each tone is, of the tone's own loudness. */
  overtone: number
}

export const voices: readonly [Voice, ...Voice[]] = [
  { id: 'alto', name: 'Alto', base: 550, step: 150, overtone: 0 },
  { id: 'bass', name: 'Bass', base: 400, step: 120, overtone: 0.15 },
  { id: 'soprano', name: 'Soprano', base: 700, step: 190, overtone: 0.08 },
]

/** The names of OpenAI's voices, so that programs written for them speak here too. */
export const openAiVoices: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ['alto', ['alloy', 'coral', 'nova', 'sage', 'marin']],
    ['bass', ['ash', 'cedar', 'echo', 'onyx', 'verse']],
    ['soprano', ['ballad', 'fable', 'shimmer']],
  ].flatMap(([id, names]) => (names as string[]).map(name => [name, id as string])),
)

/** Samples a second of what `encode` gives. */
export const sampleRate = 24_000

/** Slowest and fastest: beyond them tones would be tiring, or too short to be told apart. */
export const speeds = { least: 0.5, most: 2 }

/** Milliseconds of a chord at speed 1. */
const chordMs = 30
export const shortestMs = chordMs / speeds.most
export const longestMs = chordMs / speeds.least

/** Which of a voice's tones stand for what. The halves lie between each other, so that a chord is never next to its like. */
export const tonesOfHalf = [
  { low: [0, 2, 4, 6], high: [8, 10, 12, 14] },
  { low: [1, 3, 5, 7], high: [9, 11, 13, 15] },
] as const
export const marks = { first: 16, second: 17 }
/** Chords that a mark lasts: the first and then the second before a text, the first after it. */
export const markChords = { first: 4, second: 8, end: 4 }
/** Silence around a text. */
export const restChords = 2

export const frequencyOf = ({ base, step }: Voice, tone: number): number => base + tone * step

/** The tones of a half of a byte: `half` is 0 for the upper four bits and 1 for the lower. */
export const tonesOf = (half: 0 | 1, bits: number): [low: number, high: number] => [
  tonesOfHalf[half].low[bits >> 2]!,
  tonesOfHalf[half].high[bits & 3]!,
]

/** Samples of one chord. A chord lasts whole milliseconds: a listener can then tell the speed exactly. */
export const chordSamples = (speed: number): number =>
  (Math.round(chordMs / Math.min(speeds.most, Math.max(speeds.least, speed))) * sampleRate) / 1000
