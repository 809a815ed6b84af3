import type { ChordVoice } from '../../../../gpu/engines/demo/chords.ts'
import { type DecodedText, decoding, encoding, sampleCount } from '../../../../gpu/engines/demo/tones.ts'

/** Encodes a whole text: 16-bit samples, mono, 24 000 per second. */
export function encode(text: string, voice: ChordVoice, speed = 1): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(sampleCount(Buffer.byteLength(text), speed))
  let at = 0
  for (const piece of encoding(text, voice, speed)) {
    samples.set(piece, at)
    at += piece.length
  }
  return samples
}

/** Decodes in one step what `encode` returned. */
export function decode(samples: ArrayLike<number>, sampleRate: number): DecodedText {
  const steps = decoding(samples, sampleRate)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
