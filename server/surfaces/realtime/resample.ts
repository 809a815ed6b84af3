/** Sample rates that clients may send. Engines get the first. */
export const inputRates = [16_000, 24_000] as const
export type InputRate = (typeof inputRates)[number]

/** Taps of the filter on each side of a sample. */
const half = 12
/** Cutoff as a part of the input rate: 7.5 kHz of 24 kHz, below half of the output rate. */
const cutoff = 7_500 / 24_000

/** Returns the filter for an output sample that lies `phase` of an input sample after its nearest one before. */
function filterAt(phase: number): Float64Array {
  const taps = Float64Array.from({ length: 2 * half }, (_, tap) => {
    const x = tap - half + 1 - phase
    const sinc = x === 0 ? 2 * cutoff : Math.sin(2 * Math.PI * cutoff * x) / (Math.PI * x)
    // A Hann window over all taps.
    return sinc * (0.5 + 0.5 * Math.cos((Math.PI * x) / half))
  })
  const sum = taps.reduce((total, tap) => total + tap, 0)
  return taps.map(tap => tap / sum)
}

/** Every three input samples make two: one at a sample and one between two. */
const filters = () => [filterAt(0), filterAt(0.5)] as const

/** Converts samples of a client to 16,000 a second, piece by piece. */
export function openPcmResampler(rate: InputRate): (samples: Int16Array) => Int16Array {
  if (rate === 16_000) return samples => samples
  const [whole, between] = filters()
  let held: Int16Array = new Int16Array(half - 1)
  /** Position of the next output sample in `held`, in half input samples. */
  let position = 2 * (half - 1)
  return samples => {
    const input = new Int16Array(held.length + samples.length)
    input.set(held)
    input.set(samples, held.length)
    const output: number[] = []
    for (; ; position += 3) {
      const base = position >> 1
      if (base + half >= input.length) break
      const taps = position % 2 === 0 ? whole : between
      let sum = 0
      for (let tap = 0; tap < 2 * half; tap++) sum += taps[tap]! * input[base - half + 1 + tap]!
      output.push(Math.max(-32_768, Math.min(32_767, Math.round(sum))))
    }
    const from = (position >> 1) - half + 1
    held = input.slice(from)
    position -= 2 * from
    return Int16Array.from(output)
  }
}
