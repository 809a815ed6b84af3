import type { Readable } from 'node:stream'
import { z } from 'zod'
import type { CallerSignal } from '../../abort-source.ts'
import { Failure } from '../../failure.ts'
import { diskFailure } from '../../files/write.ts'
import { jsonOf } from '../../json.ts'
import { type DecodedAudio, sampleRate } from '../../media/audio-decoder.ts'
import type { Lease } from '../../models/fleet.ts'
import { nonEmptyText } from '../../schemas/fields.ts'
import { wavHead } from '../wav.ts'
import { engineFault } from './answer.ts'
import { ask } from './ask.ts'
import { type EngineStream, openEngineStream, type StreamFaults } from './engine-stream.ts'
import { type FormFile, formBody } from './form-body.ts'
import type { AudioProtocol } from './protocol.ts'

/** The routes of OpenAI-style servers for speech: JSON to audio, and a form with a WAV file to JSON. */
export const openaiAudio: AudioProtocol = {
  name: 'openai-audio',
  paths: {
    synthesize: '/v1/audio/speech',
    transcribe: '/v1/audio/transcriptions',
    translate: '/v1/audio/translations',
  },
  synthesize,
  voices: askForVoices,
  transcribe,
  transcribeStream,
}

export interface EngineAudio {
  /** Content type of the engine; may be empty. */
  contentType: string
  /** Destroying it ends the engine's request. Fails with the Failure of the engine or the reason of the signal. */
  audio: Readable
}

/** Content types that are not audio. */
const notAudio = /^(application\/(problem\+)?json|text\/)/i

/**
 * Requests audio and resolves when its first bytes have arrived, so that earlier errors can still be reported or retried.
 * The engine's answer is read only as fast as the stream is. `alwaysType` is the content type of the audio of an engine that
 * labels it wrongly.
 */
export async function synthesize(
  lease: Lease,
  { path, body, maxBytes }: { path: string; body: string; maxBytes: number },
  signal: CallerSignal,
  { alwaysType }: { alwaysType?: string } = {},
): Promise<EngineAudio> {
  const faults: StreamFaults = {
    maxBytes,
    tooLong: () => engineFault(`with more audio than ${Math.floor(maxBytes / 2 ** 20)} MiB`),
    empty: () => engineFault('without any audio'),
    unexpected: type =>
      alwaysType === undefined && notAudio.test(type)
        ? engineFault(`'${type.slice(0, 60)}' instead of audio`)
        : undefined,
  }
  const { contentType, bytes } = await openEngineStream(lease, { path, body }, faults, signal)
  return { contentType: alwaysType ?? contentType, audio: bytes }
}

/**
 * Returns the Failure of an audio stream. A stream fails with whatever error came first, which can be that of the disk to
 * which it is written.
 */
export const audioFailure = (thrown: unknown, signal: CallerSignal): Failure =>
  Failure.from(signal.aborted ? signal.reason : diskFailure(thrown))

/** A transcription request for an engine: the fields of its form, without the audio. */
export interface TranscriptionCall {
  path: string
  fields: [name: string, value: string][]
}
type Sound = Pick<DecodedAudio, 'path' | 'bytes' | 'seconds' | 'silent'>

/** The answer to silence. No engine is asked, because Whisper hears words in it. */
const nothingHeard = Buffer.from('{"text":"","segments":[]}')

/**
 * Sends audio to an engine and resolves with its whole answer. The audio is read from the disk while it is sent: an hour
 * is 115 MB, and engines have many slots. The answer to silence has no text. Rejects with the Failure of the engine or
 * the reason of the signal.
 */
export function transcribe(
  lease: Lease,
  request: TranscriptionCall,
  sound: Sound,
  maxBytes: number,
  signal: CallerSignal,
): Promise<Buffer> {
  if (sound.silent) return Promise.resolve(nothingHeard)
  const { path, body, ...more } = engineCall(request, sound)
  return ask(lease, path, body, maxBytes, signal, more)
}

/** The same for an engine that is asked for a stream. Resolves when its answer begins. */
export function transcribeStream(
  lease: Lease,
  request: TranscriptionCall,
  sound: Sound,
  maxBytes: number,
  signal: CallerSignal,
): Promise<EngineStream> {
  const faults = {
    maxBytes,
    tooLong: () => engineFault(`with more than ${Math.floor(maxBytes / 2 ** 20)} MiB`),
    empty: () => engineFault('nothing'),
  }
  return openEngineStream(lease, engineCall(request, sound), faults, signal)
}

function engineCall({ path, fields }: TranscriptionCall, sound: Sound) {
  return {
    path,
    ...formBody(fields, [audioFile(sound)]),
    // Most engines send nothing before they are done, which on a CPU can take as long as the audio.
    patienceMs: Math.ceil(2_000 * sound.seconds),
  }
}

/** Returns decoded audio as a WAV file of a form. */
export const audioFile = ({ path, bytes }: Pick<DecodedAudio, 'path' | 'bytes'>): FormFile => {
  const head = wavHead(sampleRate, bytes)
  return { name: 'file', filename: 'audio.wav', contentType: 'audio/wav', path, bytes, head }
}

export interface Voice {
  id: string
  name: string
  /** As the engine reports them; null if it does not. */
  language: string | null
  gender: string | null
  /** An http(s) URL of a sample. */
  preview_url: string | null
}

/** Returns a voice of which only the name is known. */
export const plainVoice = (id: string): Voice => ({ id, name: id, language: null, gender: null, preview_url: null })

const name = nonEmptyText.max(256)
const shortText = nonEmptyText.max(64).nullable().default(null).catch(null)
const address = z
  .url({ protocol: /^https?$/ })
  .max(2048)
  .nullable()
  .default(null)
  .catch(null)
const One = z.union([
  name.transform(plainVoice),
  z
    .object({
      id: name.optional(),
      voice_id: name.optional(),
      name: name.optional(),
      language: shortText,
      gender: shortText,
      preview_url: address,
    })
    .transform(({ id, voice_id, name: called, ...facts }) => ({
      id: id ?? voice_id ?? called ?? '',
      name: called ?? id ?? voice_id ?? '',
      ...facts,
    })),
])
const List = z.array(One).max(2000)
/** Kokoro-FastAPI sends `voices`, speaches sends `data`, others send a bare list. */
const Answer = z.union([List, z.object({ voices: List }), z.object({ data: List })])

/** Parses the voices in an engine's answer; none if the answer is invalid. */
export function parseVoices(answer: string): Voice[] {
  const read = Answer.safeParse(jsonOf(answer))
  if (!read.success) return []
  const list = Array.isArray(read.data) ? read.data : 'voices' in read.data ? read.data.voices : read.data.data
  return list.filter(({ id }) => id !== '')
}

/** Requests the voices of a running engine, beside its synthesis route `path`. Rejects as `ask` does. */
async function askForVoices(lease: Lease, path: string, signal: CallerSignal): Promise<Voice[]> {
  const list = path.replace(/\/speech$/, '/voices')
  return parseVoices((await ask(lease, list, '', 1 << 20, signal, { method: 'GET' })).toString('utf8'))
}
