import { type FailureDetail, invalid } from '../../failure.ts'
import type { Media, MediaInput, MediaSender } from '../../media/media.ts'
import { presentMembers } from '../../members.ts'
import type { EngineRoute, ModelSet, ModelSetEntry, SpeechTraits } from '../../models/engine-traits.ts'
import { nearest } from '../../nearest.ts'
import { parsed } from '../../schemas/issues.ts'
import { defaultSpeechInput, longestSpeechInput, pcmRate, type SpeechFormat } from '../../schemas/speech-format.ts'
import type { Usage } from '../../store/store.ts'
import { extraFields, featureCheck, modelFor } from '../catalog.ts'
import { speechMetering } from '../metering.ts'
import { firstOf } from '../prediction.ts'
import { isRepeatableSample } from '../sampling.ts'
import type { FillContext, ModelFacts, SpeechTaskRecord, TaskName } from '../task.ts'
import { sampleText } from '../task-test.ts'
import { requestFor, textTask } from '../text-task.ts'
import { shortAudioUrl } from '../wav.ts'
import { linkedSpeech, longestReference, SpeechAnswer, SpeechRequest, type SpeechResult } from './speech-request.ts'

/** Names the task. */
export const speech = { id: 'std/audio-speech', title: 'text to speech' } as const satisfies TaskName

/** A request that was checked and translated for the engine. */
export interface PreparedSpeech {
  task: typeof speech.id
  modelId: string
  route: EngineRoute
  body: string
  /** The recording of a voice to clone, and the field in which the engine gets it. */
  reference?: { value: string; field: string }
  /** The format for the caller. */
  format: SpeechFormat
  /** The format that is requested from the engine. */
  engineFormat: SpeechFormat
  /** Samples per second of `pcm`. */
  sampleRate: number
  /** Whether to answer with server-sent events. */
  events: boolean
  /** Characters of the text, which are metered. */
  characters: number
}

/**
 * Checks the body of a text-to-speech request and translates it for the engine. Pure. Throws Failure for an invalid
 * body.
 */
export function prepareSpeech(raw: unknown, catalog: ModelSet): PreparedSpeech {
  const request = parsed(SpeechRequest, raw)
  const { model, input, voice, response_format, speed, instructions, stream_format, language, seed } = request
  const { sample_rate, reference_audio, reference_text } = request
  const entry = modelFor(speech, model, catalog)
  const { traits } = entry
  const known = traits.speech ?? { formats: ['wav'], voices: null, aliases: {}, longestInput: defaultSpeechInput }
  const characters = lengthOf(input, known.longestInput)
  const format = response_format ?? 'mp3'
  if (sample_rate != null && format !== 'pcm')
    throw invalid('sample_rate', "'sample_rate' is for 'response_format': pcm.", 'unsupported_parameter')
  featureCheck(entry)(reference_audio != null, 'voice_cloning', 'reference_audio')
  if (reference_audio == null && reference_text != null)
    throw invalid(
      'reference_text',
      "'reference_text' is for 'reference_audio', which is missing.",
      'unsupported_parameter',
    )
  const { audio = 'reference_audio', text = 'reference_text' } = known.reference ?? {}
  const body = {
    model: traits.upstreamId,
    input,
    // With a recording only a voice that was asked for is sent.
    voice: reference_audio != null && voice == null ? undefined : voiceFor(entry, known, voice),
    response_format: engineFormat(entry, known, format),
    speed: speed ?? undefined,
    instructions: instructions ?? undefined,
    language: language || undefined,
    seed: seed ?? undefined,
    [text]: reference_text ?? undefined,
    ...extraFields(raw, entry),
  }
  return {
    task: speech.id,
    modelId: entry.id,
    route: traits.routes.synthesize!,
    body: JSON.stringify(body),
    reference: reference_audio == null ? undefined : { value: reference_audio, field: audio },
    format,
    engineFormat: body.response_format,
    sampleRate: sample_rate ?? pcmRate,
    events: stream_format === 'sse',
    characters,
  }
}

/**
 * Returns the recording of the voice to clone as a data: URL, the same for every engine; undefined without one. Rejects
 * with Failure for unusable audio.
 */
export async function speechRecording(
  { reference }: Pick<PreparedSpeech, 'reference'>,
  media: Pick<Media, 'samples'>,
  sender: MediaSender,
  inline?: ReadonlyMap<string, MediaInput>,
): Promise<string | undefined> {
  if (!reference) return undefined
  const { value } = reference
  const audio = { field: 'reference_audio', value: inline?.get(value) ?? value, maxSeconds: longestReference }
  return await shortAudioUrl(media, sender, audio)
}

/** Returns the body for the engine, with the recording if there is one. */
export const speechBody = (
  { body, reference }: Pick<PreparedSpeech, 'body' | 'reference'>,
  recording: string | undefined,
): string => (reference ? JSON.stringify({ ...(JSON.parse(body) as object), [reference.field]: recording }) : body)

/**
 * Returns the inputs to store for a job, from a validated request: its known fields and the extra fields that the
 * model's configuration allows. `stream_format` is omitted, because only synchronous callers can read a stream.
 */
export function speechInputs(raw: unknown, entry: Pick<ModelSetEntry, 'extraParams'>): Record<string, unknown> {
  const { stream_format: _, ...known } = SpeechRequest.parse(raw)
  return { ...extraFields(raw, entry), ...known }
}

/** Counts characters, not UTF-16 code units. */
function lengthOf(input: string, max: number): number {
  let length = 0
  // A text that is far too long is not counted.
  if (input.length <= 2 * longestSpeechInput) for (const _ of input) length++
  if (length > max || input.length > 2 * longestSpeechInput)
    throw invalid('input', `'input' is longer than ${max} characters.`, 'string_above_max_length')
  return length
}

function voiceFor(entry: ModelSetEntry, { voices, aliases }: SpeechTraits, voice: SpeechRequest['voice']): unknown {
  if (voice == null) return voices?.[0]
  const name = typeof voice === 'string' ? voice : voice.id
  const known = knownVoice(name, voices, aliases)
  if (known !== undefined) return known
  if (voices === null) return voice
  throw invalid('voice', noVoice(entry.id, name, voices, aliases))
}

/** Returns the voice for a name or an alias; undefined if the engine is not known to have it. */
function knownVoice(
  name: string,
  voices: readonly string[] | null,
  aliases: SpeechTraits['aliases'],
): string | undefined {
  if (voices?.includes(name)) return name
  const meant = Object.hasOwn(aliases, name) ? aliases[name] : undefined
  return meant !== undefined && (voices === null || voices.includes(meant)) ? meant : undefined
}

function noVoice(modelId: string, voice: string, voices: readonly string[], aliases: SpeechTraits['aliases']): string {
  const names = Object.keys(aliases)
  const meant = nearest(voice.slice(0, 64), [...voices, ...names])
  const hint = meant === undefined ? '' : ` Did you mean '${meant}'?`
  const also = names.length > 0 ? ` Aliases: ${names.slice(0, 100).join(', ')}.` : ''
  return `'voice': '${modelId}' has no voice '${voice.slice(0, 64)}'.${hint} It has: ${voices.slice(0, 100).join(', ')}.${also}`
}

/** Returns a fault if the model is known not to have the voice of these inputs. */
function voiceFaults(
  { voice }: Readonly<Record<string, unknown>>,
  { id, voices, voiceAliases }: ModelFacts,
): FailureDetail[] {
  const { data } = SpeechRequest.shape.voice.safeParse(voice)
  const name = data == null || typeof data === 'string' ? data : data.id
  if (name == null || voices === undefined || knownVoice(name, voices, voiceAliases) !== undefined) return []
  return [{ code: 'invalid_value', path: 'voice', message: noVoice(id, name, voices, voiceAliases) }]
}

/** Returns the format to request from the engine: the same, or WAV, from which infer converts. */
function engineFormat(entry: ModelSetEntry, { formats }: SpeechTraits, format: SpeechFormat): SpeechFormat {
  if (formats.includes(format)) return format
  if (formats.includes('wav')) return 'wav'
  throw invalid(
    'response_format',
    `'response_format': the engine of '${entry.id}' writes ${formats.join(', ')} and no WAV, and infer converts only WAV to ${format}. Choose a format that the engine writes.`,
    'unsupported_parameter',
  )
}

/** Returns the usage of speech: its characters, and its length in seconds where that is known. */
export const speechUsage = (characters: number, seconds = 0): Usage => ({
  inputTokens: 0,
  outputTokens: 0,
  characters,
  audioMs: Math.round(seconds * 1000),
})

/** Returns the inputs to store with a job, with the recording as a file of the organization. */
async function withReferenceFile(inputs: Record<string, unknown>, context: FillContext): Promise<object> {
  const request = requestFor(inputs, context)
  const { reference_audio } = request
  if (typeof reference_audio !== 'string') return request
  return { ...request, reference_audio: (await context.take('reference_audio', reference_audio, 'audio')).id }
}

/** The record of text to speech. */
export const speechTask: SpeechTaskRecord = {
  ...speech,
  ...textTask,
  family: 'speech',
  runner: 'speech',
  aliases: ['std/speech'],
  category: 'audio',
  description: 'Turn text into spoken audio. Returns an audio file.',
  path: '/std/v1/audio/speech',
  features: ['voice_cloning'],
  sample: { input: sampleText, response_format: 'wav' },
  form: { panel: 'fields', hidden: [], first: ['response_format'] },
  request: SpeechRequest,
  modelFaults: voiceFaults,
  result: SpeechAnswer,
  metering: speechMetering,
  takesFiles: true,
  isMediaPath: path => path.length === 1 && path[0] === 'reference_audio',
  fill: withReferenceFile,
  files: { shown: linkedSpeech, ids: ({ file_id }: SpeechResult) => [file_id] },
  isRepeatable: isRepeatableSample,
  prediction: {
    media: [],
    request: input =>
      presentMembers({
        input: firstOf(input, 'text', 'input', 'prompt'),
        voice: firstOf(input, 'voice', 'speaker'),
        speed: input.speed,
      }),
    output: result => (result as { audio_url: string }).audio_url,
  },
  prepare: prepareSpeech,
}
