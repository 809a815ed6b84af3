import { Failure } from '../../failure.ts'
import type { Catalog, CatalogEntry } from '../../models/catalog.ts'
import type { EngineRoute, SpeechTraits } from '../../models/fleet.ts'
import { failureOf } from '../../schemas/issues.ts'
import { pcmRate, type SpeechFormat } from '../../schemas/speech-format.ts'
import { longestSpeechInput, usualSpeechInput } from '../../schemas/speech-input.ts'
import { extraFields, modelFor } from '../catalog.ts'
import type { TaskName } from '../task.ts'
import { SpeechRequest } from './speech-request.ts'

/** Names the task. */
export const speech = { id: 'std/audio-speech', title: 'text to speech' } as const satisfies TaskName

/** A request that has been checked and put into the engine's words. */
export interface PreparedSpeech {
  modelId: string
  route: EngineRoute
  body: string
  /** What the caller gets. */
  format: SpeechFormat
  /** What the engine is asked for. */
  asked: SpeechFormat
  /** Samples a second of `pcm`. */
  sampleRate: number
  /** As server-sent events. */
  events: boolean
  /** Of the text: what is counted as used. */
  characters: number
}

/**
 * Checks the body of a text-to-speech request and puts it into the engine's words. Pure. Throws Failure for everything
 * that is wrong with it.
 */
export function prepareSpeech(raw: unknown, catalog: Catalog): PreparedSpeech {
  const checked = SpeechRequest.safeParse(raw)
  if (!checked.success) throw failureOf(checked.error, raw)
  const { model, input, voice, response_format, speed, instructions, stream_format, language, seed, sample_rate } =
    checked.data
  const entry = modelFor(speech, model, catalog)
  const { traits } = entry
  const known = traits.speech ?? { formats: ['wav'], voices: null, longestInput: usualSpeechInput }
  const characters = lengthOf(input, known.longestInput)
  const format = response_format ?? 'mp3'
  if (sample_rate != null && format !== 'pcm')
    throw new Failure('unsupported_parameter', "'sample_rate' is for 'response_format': pcm.", { param: 'sample_rate' })
  const body = {
    model: traits.upstreamId,
    input,
    voice: voiceFor(entry, known, voice),
    response_format: askedFormat(entry, known, format),
    speed: speed ?? undefined,
    instructions: instructions ?? undefined,
    language: language ?? undefined,
    seed: seed ?? undefined,
    ...extraFields(raw, entry),
  }
  return {
    modelId: entry.id,
    route: traits.routes['std/audio-speech']!,
    body: JSON.stringify(body),
    format,
    asked: body.response_format,
    sampleRate: sample_rate ?? pcmRate,
    events: stream_format === 'sse',
    characters,
  }
}

/**
 * The inputs of a durable job: of a request that has been checked, what is known here and what the model's configuration
 * lets through. Sound that is told in events is for those who listen.
 */
export function speechInputs(raw: unknown, entry: Pick<CatalogEntry, 'extraParams'>): Record<string, unknown> {
  const { stream_format: _, ...known } = SpeechRequest.parse(raw)
  return { ...extraFields(raw, entry), ...known }
}

/** In characters, not in halves of them. */
function lengthOf(input: string, most: number): number {
  let length = 0
  // What is far too long is not counted to its end.
  if (input.length <= 2 * longestSpeechInput) for (const _ of input) length++
  if (length > most || input.length > 2 * longestSpeechInput)
    throw new Failure('string_above_max_length', `'input' is longer than ${most} characters.`, { param: 'input' })
  return length
}

function voiceFor(entry: CatalogEntry, { voices }: SpeechTraits, voice: SpeechRequest['voice']): unknown {
  if (voice == null) return voices?.[0]
  const id = typeof voice === 'string' ? voice : voice.id
  if (voices === null) return voice
  if (voices.includes(id)) return id
  throw new Failure(
    'invalid_value',
    `'voice': '${entry.id}' has no voice '${id.slice(0, 64)}'. It has: ${voices.slice(0, 100).join(', ')}.`,
    { param: 'voice' },
  )
}

/** What the engine is asked for: the format itself, or WAV, of which the others are made. */
function askedFormat(entry: CatalogEntry, { formats }: SpeechTraits, format: SpeechFormat): SpeechFormat {
  if (formats.includes(format)) return format
  if (formats.includes('wav')) return 'wav'
  throw new Failure(
    'unsupported_parameter',
    `'response_format': the engine of '${entry.id}' writes ${formats.join(', ')} and no WAV, of which ${format} could be made.`,
    { param: 'response_format' },
  )
}
