import { sampleRate } from '../media/audio-decoder.ts'
import type { Media, MediaInput, MediaSender } from '../media/media.ts'
import { wavHead } from './wav.ts'

/**
 * Resolves with short audio as a data: URL of WAV, for an engine that gets it inside its request. Rejects with Failure
 * that names the field.
 */
export async function shortAudioUrl(
  media: Pick<Media, 'samples'>,
  sender: MediaSender,
  { field, value, maxSeconds }: { field: string; value: MediaInput; maxSeconds: number },
): Promise<string> {
  const samples = await media.samples(sender, field, value, maxSeconds)
  const wav = Buffer.concat([wavHead(sampleRate, samples.length), samples])
  return `data:audio/wav;base64,${wav.toString('base64')}`
}
