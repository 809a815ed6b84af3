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

/** Samples that are sent at once: less than a second, so that others have their turn. */
const together = 16 << 10

/** Says texts in tones, as the /v1/audio/speech of others says them in words. */
export const synthesize: Handler = async (body, reply) => {
  const read = Call.safeParse(body)
  if (!read.success) {
    const [issue] = read.error.issues
    const param = issue?.path.join('.') || 'body'
    throw new Failure('invalid_value', `'${param}' is wrong: ${issue?.message}.`, { param })
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
  let held = new Int16Array(together)
  let count = 0
  const send = async () => {
    await answer.write(new Uint8Array(held.buffer, 0, count * 2))
    await turn()
    reply.signal.throwIfAborted()
    held = new Int16Array(together)
    count = 0
  }
  for (const piece of encoding(input, voice, speed)) {
    if (count + piece.length > together) await send()
    held.set(piece, count)
    count += piece.length
  }
  if (count > 0) await send()
  answer.end()
}

/** What voices there are, as Kokoro-FastAPI and others tell it. */
export const listVoices: Handler = (_body, reply) =>
  reply.json({ voices: voices.map(({ id, name }) => ({ id, name })) })
