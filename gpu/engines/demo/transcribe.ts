import { setImmediate as turn } from 'node:timers/promises'
import { invalid } from '../../../core/failure.ts'
import type { Handler } from '../http.ts'
import { type EngineReply, eventStream } from '../reply.ts'
import { type DecodedText, decoding } from './tones.ts'

interface Sound {
  samples: Int16Array
  rate: number
}

/** Longest time slice in milliseconds, after which the decoder yields to the event loop. */
const sliceMs = 10

/**
 * Handles POST /v1/audio/transcriptions: transcribes the tones that `synthesize` writes. The text of any other audio is
 * empty.
 */
export const transcribeHandler: Handler = async (form, reply) => {
  if (!(form instanceof FormData)) throw invalid('file', 'Send a multipart form with the audio file.')
  const file = form.get('file')
  if (!(file instanceof Blob)) throw invalid('file', "The form has no file field 'file'.")
  const sound = samplesOf(Buffer.from(await file.arrayBuffer()), 'file')
  const { samples, rate } = sound
  if (form.get('stream') === 'true') return await streamText(sound, reply)
  const decoded = await decodeInSlices(sound, reply.signal)
  const [duration, words] = [samples.length / rate, form.getAll('timestamp_granularities[]').includes('word')]
  reply.json(
    form.get('response_format') === 'verbose_json'
      ? {
          task: 'transcribe',
          duration,
          text: decoded.text,
          segments: decoded.segments.map((part, id) => ({ id, ...part })),
          ...(words ? { words: decoded.words.map(({ text: word, start, end }) => ({ word, start, end })) } : {}),
        }
      : { text: decoded.text },
  )
}

async function streamText(sound: Sound, reply: EngineReply): Promise<void> {
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
  const delta = (text: string) => event({ type: 'transcript.text.delta', delta: text })
  reply.form = eventStream
  let sent = 0
  const { text } = await decodeInSlices(sound, reply.signal, async soFar => {
    if (soFar.length <= sent) return
    const piece = soFar.slice(sent)
    sent = soFar.length
    await reply.write(delta(piece))
  })
  const rest = text.slice(sent)
  reply.end(`${rest === '' ? '' : delta(rest)}${event({ type: 'transcript.text.done', text })}`)
}

/** `onText` gets the text so far after each slice. */
export async function decodeInSlices(
  { samples, rate }: Sound,
  signal: AbortSignal,
  onText?: (text: string) => void | Promise<void>,
): Promise<DecodedText> {
  const steps = decoding(samples, rate)
  for (let sliceStart = performance.now(); ; ) {
    const { done, value } = steps.next()
    if (done) return value
    if (value && onText) await onText(value())
    if (performance.now() - sliceStart < sliceMs) continue
    await turn()
    signal.throwIfAborted()
    sliceStart = performance.now()
  }
}

/** Parses 16-bit mono WAV, the format that infer sends to engines. */
export function samplesOf(wav: Buffer, field: string): Sound {
  const isSupported =
    wav.length >= 44 &&
    wav.toString('latin1', 0, 4) === 'RIFF' &&
    wav.toString('latin1', 8, 16) === 'WAVEfmt ' &&
    wav.readUInt32LE(20) === 0x0001_0001 &&
    wav.readUInt16LE(34) === 16 &&
    wav.toString('latin1', 36, 40) === 'data'
  const rate = isSupported ? wav.readUInt32LE(24) : 0
  if (rate < 8_000 || rate > 192_000) throw invalid(field, `The audio in '${field}' must be 16-bit mono WAV.`)
  const samples = new Int16Array((wav.length - 44) >> 1)
  for (let at = 0; at < samples.length; at++) samples[at] = wav.readInt16LE(44 + 2 * at)
  return { samples, rate }
}
