import { z } from 'zod'
import { integer, namedObject, nullableNumber, number } from '../../core/schemas/fields.ts'
import type { Usage } from '../../core/usage.ts'

/** What a job or an execution has used. */
export const UsageObject = namedObject('Usage', 'What was metered. What a task does not use is 0.', {
  input_tokens: integer('Tokens of the inputs.'),
  cached_tokens: integer('The part of the input tokens that the engine has reused from its cache.'),
  output_tokens: integer('Tokens of the results.'),
  reasoning_tokens: integer('The part of the output tokens that is reasoning.'),
  images: integer('Images created.'),
  video_seconds: number('Seconds of video created.'),
  audio_seconds: number('Seconds of audio created or transcribed.'),
  characters: integer('Characters turned into audio.'),
  documents: integer('Documents ranked and pairs scored.'),
  gpu_ms: integer(
    'Milliseconds on a slot, times the devices of the engine, divided by its slots; failed attempts too.',
  ),
  energy_joules: nullableNumber(
    'Energy of the devices in that time, in joules; null if a device does not report its power.',
  ),
})

/** Returns a usage as API clients read it. */
export const usageObject = (usage: Usage): z.input<typeof UsageObject> => ({
  input_tokens: usage.inputTokens,
  cached_tokens: usage.cachedTokens ?? 0,
  output_tokens: usage.outputTokens,
  reasoning_tokens: usage.reasoningTokens ?? 0,
  images: usage.images ?? 0,
  video_seconds: (usage.videoMs ?? 0) / 1000,
  audio_seconds: (usage.audioMs ?? 0) / 1000,
  characters: usage.characters ?? 0,
  documents: usage.documents ?? 0,
  gpu_ms: usage.gpuMs ?? 0,
  energy_joules: usage.energyMj == null ? null : usage.energyMj / 1000,
})
