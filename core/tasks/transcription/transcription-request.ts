import { z } from 'zod'
import type { TranscriptionTask } from '../../schemas/task.ts'
import { languageCode } from './languages.ts'

/** Forms in which a transcription is answered. */
export const transcriptionFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const
export type TranscriptionFormat = (typeof transcriptionFormats)[number]

/** Where a sound may be named; exactly one of them. */
export const audioFields = ['file', 'url', 'file_id'] as const

const sound = z.string().min(1)
const fields = {
  model: z.string().min(1).max(256),
  file: sound
    .nullish()
    .describe('An address, a `data:` URL or the id of a file. One of `file`, `url` and `file_id` is needed.'),
  url: sound.nullish().describe('An http(s) address of the sound, or a `data:` URL.'),
  file_id: sound.nullish().describe('A file of the organization: `file-…`.'),
  prompt: z.string().max(8192).nullish().describe('Words and names to be expected.'),
  temperature: z.number().min(0).max(1).nullish(),
  response_format: z.enum(transcriptionFormats).nullish(),
  stream: z.boolean().nullish().describe('Events instead of one answer; only with `json` and `text`.'),
  include: z
    .array(z.enum(['logprobs']))
    .max(1)
    .nullish(),
  chunking_strategy: z.union([z.literal('auto'), z.looseObject({ type: z.string() })]).nullish(),
}
const onlyTranscription = {
  language: z
    .string()
    .max(32)
    .refine(text => languageCode(text) !== undefined, 'is no language that is known here; send a code such as en.')
    .nullish()
    .describe('A code of ISO 639-1; found out when absent.'),
  timestamp_granularities: z
    .array(z.enum(['word', 'segment']))
    .max(2)
    .nullish()
    .describe('Only with `verbose_json`, which has segments always.'),
  diarize: z.boolean().nullish().describe('Tell the speakers apart, where the engine can.'),
}

type Sounds = Partial<Record<(typeof audioFields)[number], string | null | undefined>>

/** Exactly one sound. What else is wrong with a request is said besides. */
function oneSound(request: Sounds, context: z.RefinementCtx): void {
  const [first, second] = audioFields.filter(name => request[name] != null)
  if (first === undefined)
    context.addIssue({ code: 'invalid_type', expected: 'nonoptional', path: ['file'], input: undefined })
  else if (second !== undefined)
    context.addIssue({
      code: 'custom',
      path: ['file'],
      message: `the sound is sent twice, as '${first}' and as '${second}'; send one of ${audioFields.join(', ')}.`,
    })
}

export const TranscriptionRequest = z
  .object({ ...fields, ...onlyTranscription })
  .superRefine(oneSound)
  .meta({ id: 'TranscriptionRequest' })
export type TranscriptionRequest = z.output<typeof TranscriptionRequest>

export const TranslationRequest = z.object(fields).superRefine(oneSound).meta({ id: 'TranslationRequest' })

/** The same as forms. */
const file = z
  .file()
  .meta({ description: 'FLAC, MP3, MP4, M4A, OGG, WAV or WebM, 25 MB and an hour at most.' })
  .optional()
export const TranscriptionForm = z.object({ ...fields, ...onlyTranscription, file }).meta({ id: 'TranscriptionForm' })
export const TranslationForm = z.object({ ...fields, file }).meta({ id: 'TranslationForm' })

export const transcriptionRequests: Record<TranscriptionTask, z.ZodType<TranscriptionRequest>> = {
  'std/audio-transcription': TranscriptionRequest,
  'std/audio-translation': TranslationRequest,
}

export const Segment = z.object({
  id: z.int(),
  seek: z.int(),
  start: z.number().describe('Seconds.'),
  end: z.number(),
  text: z.string(),
  tokens: z.array(z.int()),
  temperature: z.number(),
  avg_logprob: z.number().describe('0 where the engine does not say.'),
  compression_ratio: z.number(),
  no_speech_prob: z.number().describe('0 where the engine does not say.'),
  speaker: z.string().optional(),
})
export type Segment = z.output<typeof Segment>

export const Word = z.object({ word: z.string(), start: z.number(), end: z.number() })
export type Word = z.output<typeof Word>

/** What `verbose_json` answers, and the result of a job and of a node. */
export const Transcription = z
  .object({
    task: z.enum(['transcribe', 'translate']),
    language: z.string().describe('Its English name in small letters; `unknown` where the engine does not say.'),
    duration: z.number().describe('Seconds.'),
    text: z.string(),
    segments: z.array(Segment),
    words: z.array(Word).optional(),
    usage: z.object({ type: z.literal('duration'), seconds: z.int().describe('Rounded up.') }),
    x_groq: z.object({ id: z.string() }).optional(),
  })
  .meta({ id: 'Transcription' })
export type Transcription = z.output<typeof Transcription>
