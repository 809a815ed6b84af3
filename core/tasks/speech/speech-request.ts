import { z } from 'zod'
import { notImplemented } from '../../schemas/not-implemented.ts'
import { speechFormats } from '../../schemas/speech-format.ts'
import { defaultSpeechInput } from '../../schemas/speech-input.ts'

/** The wire shape of text-to-speech. Source: OpenAI's CreateSpeechRequest, with the extensions that servers share. */
export const SpeechRequest = z
  .object({
    model: z.string().min(1).max(256),
    input: z
      .string()
      .min(1)
      .describe(`The text. At most ${defaultSpeechInput} characters, unless the model's configuration says otherwise.`),
    voice: z
      .union([z.string().min(1).max(256), z.object({ id: z.string().min(1).max(256) })])
      .nullish()
      .describe(
        'Its name or an alias (`voice_aliases` in `infer.yaml`), or an object with its id. The first that the engine has when absent.',
      ),
    response_format: z
      .enum(speechFormats)
      .nullish()
      .describe(
        'mp3 when absent; `pcm` is 16-bit little-endian samples, mono, 24 000 a second. What the engine cannot write is made here: wav, pcm and mp3 always, the others where the server has ffmpeg.',
      ),
    sample_rate: z
      .int()
      .min(8_000)
      .max(48_000)
      .nullish()
      .describe('Samples a second of `pcm`; 24000 when absent. Other formats keep the rate of the engine.'),
    speed: z.number().min(0.25).max(4).nullish(),
    instructions: z.string().max(4096).nullish().describe('How it is to sound, for models that follow it.'),
    stream_format: z
      .enum(['audio', 'sse'])
      .nullish()
      .describe('`sse`: pieces of the sound in base64 as server-sent events. Jobs pass over it.'),
    language: z.string().min(1).max(64).nullish(),
    seed: z.int().min(0).nullish(),
    reference_audio: notImplemented,
    user: z.string().nullish(),
  })
  .meta({ id: 'SpeechRequest' })
export type SpeechRequest = z.output<typeof SpeechRequest>

/** The result of a job. */
export const SpeechAnswer = z
  .object({
    audio_url: z.string(),
    content_type: z.string(),
    duration: z.number().nullable().describe('Seconds; null where the server cannot measure them (no ffprobe).'),
    format: z.enum(speechFormats),
    file_id: z.string(),
  })
  .meta({ id: 'SpeechAnswer' })
