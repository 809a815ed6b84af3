import { open } from 'node:fs/promises'

/** Samples of a frame: 20 ms of decoded audio. */
const frameSamples = 320
/** Root mean square of a frame, 66 dB below full scale: noise of converters is below it, and every voice above. */
const quietest = 16
const pieceBytes = 2 * 100 * frameSamples

/** Whether no frame of 16-bit samples is loud enough for a voice. A constant offset counts as silence. Pure. */
export function isQuiet(samples: Int16Array): boolean {
  for (let from = 0; from < samples.length; from += frameSamples) {
    const to = Math.min(from + frameSamples, samples.length)
    let [sum, squares] = [0, 0]
    for (let at = from; at < to; at++) {
      const sample = samples[at]!
      sum += sample
      squares += sample * sample
    }
    const count = to - from
    if (squares - (sum * sum) / count > quietest * quietest * count) return false
  }
  return true
}

/** Whether a file of decoded audio is silent. Most files are read no further than their first two seconds. */
export async function isSilent(path: string): Promise<boolean> {
  await using file = await open(path)
  const piece = new Uint8Array(pieceBytes)
  for (;;) {
    const { bytesRead } = await file.read(piece, 0, pieceBytes)
    if (bytesRead < 2) return true
    if (!isQuiet(new Int16Array(piece.buffer, 0, bytesRead >> 1))) return false
  }
}
