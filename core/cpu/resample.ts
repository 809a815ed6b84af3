/**
 * Changes the rate of a signal that comes piece by piece. Downwards each new sample is the mean of what lies under it,
 * which keeps most of what is too high for the new rate out; upwards the values between two samples are interpolated linearly.
 * `out` is called with each sample.
 */
export function openResampler(from: number, to: number, out: (sample: number) => void): (piece: Float32Array) => void {
  if (from === to) return piece => piece.forEach(out)
  return from > to ? averaging(from / to, out) : interpolating(from / to, out)
}

function averaging(step: number, out: (sample: number) => void) {
  let room = step
  let sum = 0
  return (piece: Float32Array) => {
    for (const sample of piece) {
      if (room > 1) {
        sum += sample
        room--
        continue
      }
      out((sum + sample * room) / step)
      // The rest of it belongs to the next.
      sum = sample * (1 - room)
      room = step - (1 - room)
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
