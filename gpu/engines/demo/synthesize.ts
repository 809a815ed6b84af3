import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import { invalid } from '../../../core/failure.ts'
import { wavHead } from '../../../core/tasks/wav.ts'
import type { Handler } from '../http.ts'
import { parsedCall } from '../parsed-call.ts'
import { type ChordVoice, demoSampleRate, voices } from './chords.ts'
import { encoding, sampleCount } from './tones.ts'
import { decodeInSlices, samplesOf } from './transcribe.ts'

const Call = z.object({
  input: z.string().min(1).max(65_536),
  voice: z.string().optional(),
  /** A recording as a data: URL of WAV, whose voice is used. */
  reference_audio: z
    .string()
    .regex(/^data:audio\/wav;base64,/)
    .optional(),
  response_format: z.enum(['wav', 'pcm']).default('wav'),
  speed: z.number().min(0.25).max(4).default(1),
})

/** Samples per write: less than a second of audio, so that other requests are served in between. */
const chunkSamples = 16 << 10

export const synthesizeHandler: Handler = async (body, reply) => {
  const { input, response_format, speed, voice: name, reference_audio } = parsedCall(Call, body)
  const voice =
    reference_audio !== undefined && name === undefined
      ? await voiceIn(reference_audio, reply.signal)
      : voices.find(({ id }) => id === (name ?? voices[0].id))
  if (!voice) throw invalid('voice', `'voice' must be one of: ${voices.map(({ id }) => id).join(', ')}.`)
  const bytes = 2 * sampleCount(Buffer.byteLength(input), speed)
  const head = response_format === 'wav' ? wavHead(demoSampleRate, bytes) : Buffer.alloc(0)
  const answer = reply.binary(`audio/${response_format}`, head.length + bytes)
  if (head.length > 0) await answer.write(head)
  let buffered = new Int16Array(chunkSamples)
  let count = 0
  const send = async () => {
    await answer.write(new Uint8Array(buffered.buffer, 0, count * 2))
    await turn()
    reply.signal.throwIfAborted()
    buffered = new Int16Array(chunkSamples)
    count = 0
  }
  for (const piece of encoding(input, voice, speed)) {
    if (count + piece.length > chunkSamples) await send()
    buffered.set(piece, count)
    count += piece.length
  }
  if (count > 0) await send()
  answer.end()
}

async function voiceIn(url: string, signal: AbortSignal): Promise<ChordVoice> {
  const sound = samplesOf(Buffer.from(url.slice(url.indexOf(',') + 1), 'base64'), 'reference_audio')
  const { voice } = await decodeInSlices(sound, signal)
  if (voice) return voice
  throw invalid('reference_audio', "The recording in 'reference_audio' has none of the voices of this engine.")
}

/** Lists the voices in the format of Kokoro-FastAPI. */
export const listVoices: Handler = (_body, reply) =>
  reply.json({ voices: voices.map(({ id, name }) => ({ id, name })) })
