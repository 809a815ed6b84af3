import { setImmediate as turn } from 'node:timers/promises'
import { Failure } from '../../../core/failure.ts'
import { FormBody, type Handler } from '../http.ts'
import { type DecodedText, decoding } from './tones.ts'

const wrong = (param: string, message: string) => new Failure('invalid_value', message, { param })

/** Work of one turn, in milliseconds: then others have theirs. */
const sliceMs = 10

/**
 * Transcribes the tones that `synthesize` writes, through the request of /v1/audio/transcriptions. The text of any
 * other audio is empty.
 */
export const transcribe: Handler = async (body, reply) => {
  if (!(body instanceof FormBody)) throw wrong('file', 'Send the sound as the file of a form.')
  const form = await formOf(body)
  const file = form.get('file')
  if (!(file instanceof Blob)) throw wrong('file', "The form has no file named 'file'.")
  const { samples, rate } = samplesOf(Buffer.from(await file.arrayBuffer()))
  const heard = await hearing(samples, rate, reply.signal)
  const [duration, words] = [samples.length / rate, form.getAll('timestamp_granularities[]').includes('word')]
  reply.json(
    form.get('response_format') === 'verbose_json'
      ? {
          task: 'transcribe',
          duration,
          text: heard.text,
          segments: heard.segments.map((part, id) => ({ id, ...part })),
          ...(words ? { words: heard.words.map(({ text: word, start, end }) => ({ word, start, end })) } : {}),
        }
      : { text: heard.text },
  )
}

async function formOf({ bytes, contentType }: FormBody): Promise<FormData> {
  try {
    return await new Response(bytes, { headers: { 'content-type': contentType } }).formData()
  } catch (cause) {
    throw new Failure('invalid_value', 'The body is no form.', { cause })
  }
}

async function hearing(samples: Int16Array, rate: number, signal: AbortSignal): Promise<DecodedText> {
  const steps = decoding(samples, rate)
  for (let began = performance.now(); ; ) {
    const { done, value } = steps.next()
    if (done) return value
    if (performance.now() - began < sliceMs) continue
    await turn()
    signal.throwIfAborted()
    began = performance.now()
  }
}

/** WAV of 16 bits in one channel, which is what engines are sent. */
function samplesOf(wav: Buffer): { samples: Int16Array; rate: number } {
  const plain =
    wav.length >= 44 &&
    wav.toString('latin1', 0, 4) === 'RIFF' &&
    wav.toString('latin1', 8, 16) === 'WAVEfmt ' &&
    wav.readUInt32LE(20) === 0x0001_0001 &&
    wav.readUInt16LE(34) === 16 &&
    wav.toString('latin1', 36, 40) === 'data'
  const rate = plain ? wav.readUInt32LE(24) : 0
  if (rate < 8_000 || rate > 192_000) throw wrong('file', 'The sound must be WAV of 16 bits in one channel.')
  const samples = new Int16Array((wav.length - 44) >> 1)
  for (let at = 0; at < samples.length; at++) samples[at] = wav.readInt16LE(44 + 2 * at)
  return { samples, rate }
}
