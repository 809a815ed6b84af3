import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { wavHead } from '../../../core/tasks/wav.ts'
import type { Handler } from '../http.ts'
import { sampleRate, voices } from './chords.ts'
import { encoding, sampleCount } from './tones.ts'

const Call = z.object({
  input: z.string().min(1).max(65_536),
  voice: z.string().default(voices[0].id),
  response_format: z.enum(['wav', 'pcm']).default('wav'),
  speed: z.number().min(0.25).max(4).default(1),
})

/** Samples per write: less than a second of audio, so that other requests are served in between. */
const chunkSamples = 16 << 10

/** Handles POST /v1/audio/speech: encodes the text as tones. */
export const synthesize: Handler = async (body, reply) => {
  const read = Call.safeParse(body)
  if (!read.success) {
    const [issue] = read.error.issues
    const param = issue?.path.join('.') || 'body'
    throw new Failure('invalid_value', `'${param}' is invalid: ${issue?.message}.`, { param })
  }
  const { input, response_format, speed } = read.data
  const voice = voices.find(({ id }) => id === read.data.voice)
  if (!voice)
    throw new Failure('invalid_value', `'voice' must be one of: ${voices.map(({ id }) => id).join(', ')}.`, {
      param: 'voice',
    })
  const bytes = 2 * sampleCount(Buffer.byteLength(input), speed)
  const head = response_format === 'wav' ? wavHead(sampleRate, bytes) : Buffer.alloc(0)
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

/** Lists the voices in the format of Kokoro-FastAPI. */
export const listVoices: Handler = (_body, reply) =>
  reply.json({ voices: voices.map(({ id, name }) => ({ id, name })) })
