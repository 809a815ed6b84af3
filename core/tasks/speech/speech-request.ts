import { z } from 'zod'
import {
  modelId,
  namedObject,
  nonEmptyString,
  nonEmptyText,
  nullableNumber,
  nullish,
  nullishString,
  oneOf,
  string,
} from '../../schemas/fields.ts'
import { defaultSpeechInput, type SpeechFormat, speechFormats } from '../../schemas/speech-format.ts'
import type { FileUrl } from '../task.ts'

/** Seconds of a recording from which a voice is cloned. */
export const longestReference = 30

/** A text-to-speech request. Source: OpenAI's CreateSpeechRequest, with the extensions that other servers share. */
export const SpeechRequest = namedObject('SpeechRequest', 'A text to speak.', {
  model: modelId,
  input: nonEmptyString(
    `The text to speak. At most ${defaultSpeechInput} characters, unless the configuration of the model sets another limit.`,
  ),
  voice: nullish(
    z.union([nonEmptyText.max(256), z.object({ id: nonEmptyText.max(256).describe('Id of the voice.') })]),
    'Name or alias of the voice (`voice_aliases` in `infer.yaml`), or an object with its id. Default: the first voice of the engine.',
  ),
  response_format: nullish(
    z.enum(speechFormats),
    'Format of the audio. `pcm` is 16-bit little-endian samples, mono. The server converts what the engine cannot write: to wav, pcm and mp3 always, to the others if it has ffmpeg. Default: mp3.',
  ),
  sample_rate: nullish(
    z.int().min(8_000).max(48_000),
    'Samples per second of `pcm`. Other formats keep the rate of the engine. Default: 24000.',
  ),
  speed: nullish(z.number().min(0.25).max(4), 'Speed, for engines that support it. Default: 1.'),
  instructions: nullish(z.string().max(4096), 'How to speak, for models that follow instructions.'),
  stream_format: nullish(
    z.enum(['audio', 'sse']),
    '`audio`: the bytes of the audio. `sse`: server-sent events with audio in base64. Has no effect for a job. Default: `audio`.',
  ),
  language: nullish(
    z.string().max(64),
    'Language of the text, for engines that support it. Empty or absent: the engine decides.',
  ),
  seed: nullish(z.int().min(0), 'Seed of the random choices, for engines that support it. Default: random.'),
  reference_audio: nullish(
    nonEmptyText,
    `A recording of the voice to speak with, for engines that clone voices (feature \`voice_cloning\`): an http(s) URL, a \`data:\` URL or the id of a file; ${longestReference} s at most.`,
  ),
  reference_text: nullish(z.string().max(4096), 'The words of the recording, which some engines need.'),
  user: nullishString('Your own id of the end user. Accepted for compatibility; has no effect.'),
})
export type SpeechRequest = z.output<typeof SpeechRequest>

/** The result of a job. */
export const SpeechAnswer = namedObject('SpeechAnswer', 'The result of a speech job.', {
  audio_url: string(
    'Where to read the audio. Signed: it needs no token, and works for a day unless the server is set otherwise.',
  ),
  content_type: string('Media type, such as `audio/mpeg`.'),
  duration: nullableNumber('Seconds; null if the server has no ffprobe to measure them.'),
  format: oneOf('Format of the audio.', speechFormats),
  file_id: string('Id of the file: `file-…`.'),
})

/** The stored result of a speech job. Its file gets an address when the result is read. */
export interface SpeechResult {
  file_id: string
  file_name: string
  content_type: string
  /** Seconds; null if it cannot be measured because ffprobe is not installed. */
  duration: number | null
  format: SpeechFormat
}

/** Returns the result as API clients read it: its file by address and by id. */
export const linkedSpeech = ({ file_id, file_name, ...facts }: SpeechResult, link: FileUrl) => ({
  audio_url: link({ id: file_id, name: file_name }),
  ...facts,
  file_id,
})
