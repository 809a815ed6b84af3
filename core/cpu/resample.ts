/**
 * Changes the sample rate of a signal that comes in pieces. For a lower rate each new sample is the mean of the samples
 * that it covers, which removes most frequencies that are too high for the new rate. For a higher rate the values between
 * two samples are interpolated linearly. `out` is called with each sample.
 */
export function openResampler(from: number, to: number, out: (sample: number) => void): (piece: Float32Array) => void {
  if (from === to) return piece => piece.forEach(out)
  return from > to ? averaging(from / to, out) : interpolating(from / to, out)
}

function averaging(step: number, out: (sample: number) => void) {
  /** Part of the new sample that is not covered yet. */
  let rest = step
  let sum = 0
  return (piece: Float32Array) => {
    for (const sample of piece) {
      if (rest > 1) {
        sum += sample
        rest--
        continue
      }
      out((sum + sample * rest) / step)
      // The remaining part of this sample belongs to the next one.
      sum = sample * (1 - rest)
      rest = step - (1 - rest)
    }
  }
}

function interpolating(step: number, out: (sample: number) => void) {
  let before: number | undefined
  let at = 0
  return (piece: Float32Array) => {
    for (const sample of piece) {
      before ??= sample
      for (; at < 1; at += step) out(before + (sample - before) * at)
      at--
      before = sample
    }
  }
}
