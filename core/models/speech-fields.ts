import { z } from 'zod'
import { longestSpeechInput, speechFormats } from '../schemas/speech-format.ts'
import { tasksBy } from '../schemas/task.ts'

/** The other keys of the model in each example. */
const kokoro = { id: 'kokoro', engine: 'remote', url: 'http://127.0.0.1:8880/v1', tasks: tasksBy('synthesize') }

/** Keys of a model that turns text into audio. */
export const speechFields = {
  voices: z
    .array(z.string().min(1).max(256))
    .min(1)
    .max(1000)
    .optional()
    .meta({
      description: 'Voices of the model, the default one first. Requests for others are refused.',
      example: ['af_heart', 'bm_george'],
      with: kokoro,
      absent: 'any: the engine decides',
    }),
  voice_aliases: z
    .record(z.string().min(1).max(256), z.string().min(1).max(256))
    .optional()
    .meta({
      description: "Further names of voices, for programs that ask for OpenAI's.",
      example: { alloy: 'af_heart' },
      with: kokoro,
      absent: 'none; demo has those of OpenAI',
    }),
  speech_formats: z
    .array(z.enum(speechFormats))
    .min(1)
    .optional()
    .meta({
      description:
        'Audio formats that the engine writes. infer converts its wav to the others: pcm and mp3 by itself, opus, aac and flac with ffmpeg.',
      example: ['wav'],
      with: kokoro,
      absent: 'all',
    }),
  speech_input: z.number().int().min(1).max(longestSpeechInput).optional().meta({
    description: 'Maximum length of one text.',
    unit: 'characters',
    example: 10_000,
    with: kokoro,
    absent: '4096',
  }),
}
