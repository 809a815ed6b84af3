import { z } from 'zod'
import {
  array,
  integer,
  modelId,
  namedObject,
  nonEmptyText,
  nullish,
  nullishBoolean,
  number,
  object,
  oneOf,
  optional,
  optionalObject,
  optionalString,
  string,
} from '../../schemas/fields.ts'
import type { TranscriptionTask } from '../../schemas/task.ts'
import { requestedLanguage } from './languages.ts'

/** Response formats of a transcription. */
export const transcriptionFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const
export type TranscriptionFormat = (typeof transcriptionFormats)[number]

/** Fields that can name the audio. A request has exactly one of them. */
export const audioFields = ['file', 'url', 'file_id'] as const

/** Known speakers of a request, and seconds of the recording of each. */
const maxSpeakers = 4
export const longestSpeaker = 10

const audioReference = nonEmptyText
const fields = {
  model: modelId,
  file: nullish(
    audioReference,
    'The audio: an http(s) URL, a `data:` URL or the id of a file. Send exactly one of `file`, `url` and `file_id`.',
  ),
  url: nullish(audioReference, 'The audio as an http(s) URL or a `data:` URL.'),
  file_id: nullish(audioReference, 'The audio as the id of a file of the organization: `file-…`.'),
  prompt: nullish(z.string().max(8192), 'Words and names that occur in the audio.'),
  temperature: nullish(
    z.number().min(0).max(1),
    'Randomness of the transcription, 0 to 1. Default: the engine decides.',
  ),
  response_format: nullish(
    z.enum(transcriptionFormats),
    'Form of the answer: JSON with or without segments or speakers, plain text, or subtitles. Default: `json`.',
  ),
  stream: nullishBoolean('Whether to send the text as server-sent events. Only for `json` and `text`. Default: false.'),
  include: nullish(
    z.array(z.enum(['logprobs'])).max(1),
    '`logprobs`: log probabilities of the tokens, only with `json`.',
  ),
  chunking_strategy: nullish(
    z.union([z.literal('auto'), z.looseObject({ type: string('Name of the strategy, such as `server_vad`.') })]),
    'How to split long audio. Passed to the engine. Default: the engine decides.',
  ),
  vad_filter: nullishBoolean(
    'Whether the engine leaves out parts without speech. Where it cannot, `x-infer-ignored` names the field. Default: false.',
  ),
}
const onlyTranscription = {
  language: nullish(
    z
      .string()
      .max(32)
      .refine(
        text => requestedLanguage(text) !== undefined,
        'is not a known language; send a code such as en, or auto.',
      ),
    'Language of the audio: a code of ISO 639-1, such as `en`. `auto`, empty or absent: the engine detects it.',
  ),
  timestamp_granularities: nullish(
    z.array(z.enum(['word', 'segment'])).max(2),
    'Which times to return, only with `verbose_json`, which has segments in any case. Default: `segment`.',
  ),
  known_speaker_names: nullish(
    z.array(nonEmptyText.max(64)).max(maxSpeakers),
    'Names of speakers whose voices are in `known_speaker_references`, in the same order, for engines that can.',
  ),
  known_speaker_references: nullish(
    z.array(nonEmptyText).max(maxSpeakers),
    `Recordings of the known speakers, of ${longestSpeaker} s at most: \`data:\` URLs, http(s) URLs or ids of files.`,
  ),
  diarize: nullishBoolean('Whether to tell speakers apart, for engines that can. Default: false.'),
}

type AudioReferences = Partial<Record<(typeof audioFields)[number], string | null | undefined>>

/** Requires exactly one reference to audio. Other faults of a request are reported as well. */
function oneAudio(request: AudioReferences, context: z.RefinementCtx): void {
  const [first, second] = audioFields.filter(name => request[name] != null)
  if (first === undefined)
    context.addIssue({ code: 'invalid_type', expected: 'nonoptional', path: ['file'], input: undefined })
  else if (second !== undefined)
    context.addIssue({
      code: 'custom',
      path: ['file'],
      message: `the audio is sent twice, as '${first}' and as '${second}'; send one of ${audioFields.join(', ')}.`,
    })
}

interface KnownSpeakers {
  known_speaker_names?: string[] | null | undefined
  known_speaker_references?: string[] | null | undefined
}

/** Requires a name for each recording. */
function namedSpeakers(
  { known_speaker_names: names, known_speaker_references: recordings }: KnownSpeakers,
  context: z.RefinementCtx,
): void {
  if ((names?.length ?? 0) === (recordings?.length ?? 0)) return
  context.addIssue({
    code: 'custom',
    path: ['known_speaker_references'],
    message: `has ${recordings?.length ?? 0} recordings, but 'known_speaker_names' has ${names?.length ?? 0} names; send one for each.`,
  })
}

export const TranscriptionRequest = z
  .object({ ...fields, ...onlyTranscription })
  .superRefine(oneAudio)
  .superRefine(namedSpeakers)
  .meta({ id: 'TranscriptionRequest', description: 'Audio to transcribe.' })
export type TranscriptionRequest = z.output<typeof TranscriptionRequest>

export const TranslationRequest = z
  .object(fields)
  .superRefine(oneAudio)
  .meta({ id: 'TranslationRequest', description: 'Audio to translate to English text.' })

/** The same requests as forms. */
const file = z
  .file()
  .meta({ description: 'The audio file: FLAC, MP3, MP4, M4A, OGG, WAV or WebM; 25 MB and one hour at most.' })
  .optional()
export const TranscriptionForm = namedObject('TranscriptionForm', 'Audio to transcribe, as a form.', {
  ...fields,
  ...onlyTranscription,
  file,
})
export const TranslationForm = namedObject('TranslationForm', 'Audio to translate, as a form.', { ...fields, file })

export const transcriptionRequests: Record<TranscriptionTask, z.ZodType<TranscriptionRequest>> = {
  'std/audio-transcription': TranscriptionRequest,
  'std/audio-translation': TranslationRequest,
}

export const TranscriptionSegment = z.object({
  id: integer('Position of the segment, from 0.'),
  seek: integer('Where the engine began to read, as it reports it; else 0.'),
  start: number('Seconds from the beginning.'),
  end: number('Seconds from the beginning.'),
  text: string('Text of the segment.'),
  tokens: array('Token ids of the text; empty if the engine reports none.', z.int()),
  temperature: number('Temperature that the engine used.'),
  avg_logprob: number('Mean log probability of the tokens; 0 if the engine does not report it.'),
  compression_ratio: number('Length of the text divided by its compressed length. A high value points to repetition.'),
  no_speech_prob: number('Probability that nobody speaks, 0 to 1; 0 if the engine does not report it.'),
  speaker: optionalString('Who speaks, if the engine distinguishes speakers.'),
})
export type TranscriptionSegment = z.output<typeof TranscriptionSegment>

export const Word = z.object({
  word: string('The word.'),
  start: number('Seconds from the beginning.'),
  end: number('Seconds from the beginning.'),
})
export type Word = z.output<typeof Word>

/** The answer in `verbose_json`, and the result of a job or a workflow node. */
export const Transcription = namedObject('Transcription', 'The text of audio.', {
  task: oneOf('What was done.', ['transcribe', 'translate']),
  language: string('English name of the language in lower case; `unknown` if the engine does not report it.'),
  duration: number('Length of the audio in seconds.'),
  text: string('The whole text.'),
  segments: array('The text in parts with their times.', TranscriptionSegment),
  words: optional(z.array(Word), 'Single words with their times, with `timestamp_granularities: ["word"]`.'),
  usage: object('What was metered.', {
    type: z.literal('duration'),
    seconds: integer('Seconds of audio, rounded up.'),
  }),
  x_groq: optionalObject("For Groq's clients. Absent in results of jobs.", { id: string('Id of the request.') }),
})
export type Transcription = z.output<typeof Transcription>
