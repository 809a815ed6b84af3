import { expect, test } from 'vitest'
import { isQuiet } from '../../../core/media/silence.ts'

const of = (seconds: number, sample: (at: number) => number) =>
  Int16Array.from({ length: 16_000 * seconds }, (_, at) => Math.round(sample(at)))
const noise = (at: number) => Math.sin(at * at)

test.each<[string, Int16Array, boolean]>([
  ['nothing', new Int16Array(0), true],
  ['zeros', of(2, () => 0), true],
  ['a constant offset', of(2, () => 900), true],
  ['noise of a converter', of(2, at => 4 * noise(at)), true],
  ['a quiet voice', of(2, at => 60 * Math.sin(at / 10) * (1 + Math.sin(at / 900))), false],
  ['20 ms of a tone after silence', of(2, at => (at > 31_600 ? 900 * Math.sin(at / 10) : 0)), false],
  ['a few loud samples at the end', Int16Array.from([...of(1, () => 0), 9_000, -9_000, 9_000]), false],
])('%s', (_name, samples, quiet) => {
  expect(isQuiet(samples)).toBe(quiet)
})
