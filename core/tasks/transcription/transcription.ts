import { invalid } from '../../failure.ts'
import type { Media, MediaInput, MediaSender } from '../../media/media.ts'
import type { EngineRoute, ModelSet, ModelSetEntry } from '../../models/engine-traits.ts'
import { parsed } from '../../schemas/issues.ts'
import { operationOf, type TranscriptionTask } from '../../schemas/task.ts'
import { extraFields, featureCheck, modelFor } from '../catalog.ts'
import type { TranscriptionTaskRecord } from '../task.ts'
import { shortAudioUrl } from '../wav.ts'
import { requestedLanguage } from './languages.ts'
import {
  audioFields,
  longestSpeaker,
  type TranscriptionFormat,
  type TranscriptionRequest,
  transcriptionFormats,
  transcriptionRequests,
} from './transcription-request.ts'

const hidden = ['file', 'file_id', 'response_format']

/** In what the tasks differ. */
export const transcriptions = {
  'std/audio-transcription': {
    id: 'std/audio-transcription',
    title: 'speech to text',
    aliases: ['std/transcription'],
    description: 'Turn speech into text in its language. Name the audio by `url` or `file_id`.',
    path: '/std/v1/audio/transcriptions',
    form: { panel: 'fields', hidden, first: ['language'] },
  },
  'std/audio-translation': {
    id: 'std/audio-translation',
    title: 'speech to English text',
    aliases: ['std/translation'],
    description: 'Turn speech into English text. Name the audio by `url` or `file_id`.',
    path: '/std/v1/audio/translations',
    form: { panel: 'fields', hidden, first: [] },
  },
} as const satisfies Record<
  TranscriptionTask,
  Pick<TranscriptionTaskRecord, 'id' | 'title' | 'aliases' | 'description' | 'path' | 'form'>
>

/** What `shapeTranscription` needs to convert an engine's answer to the caller's response format. */
export interface TranscriptionAnswerFormat {
  task: TranscriptionTask
  modelId: string
  format: TranscriptionFormat
  words: boolean
  logprobs: boolean
  /** The requested language code; null if the engine detects the language. */
  language: string | null
  /** Duration of the decoded audio; 0 until it is decoded. */
  seconds: number
  /** The request, for clients that read it in the body; null for a job. */
  requestId: string | null
  /** Whether it is the result of a job, which has the whole transcription whatever format was requested. */
  result?: boolean
}

/** Whether segments show their compression ratio, which infer computes where the engine does not report it. */
export const showsCompression = ({ format, result }: Pick<TranscriptionAnswerFormat, 'format' | 'result'>): boolean =>
  result === true || format === 'verbose_json'

/** A request that was checked and translated for the engine, without its audio. */
export interface PreparedTranscription {
  task: TranscriptionTask
  modelId: string
  route: EngineRoute
  /** Form fields for the engine, without files. */
  fields: [name: string, value: string][]
  /** The field that names the audio, and its value. The value is not used if the audio is a file of a form. */
  sound: { field: (typeof audioFields)[number]; value: string }
  /** Recordings of known speakers, which the engine gets inside its request. */
  speakers: readonly string[]
  stream: boolean
  /** Whether the engine is asked for a stream, which it may still answer with JSON. */
  engineStreams: boolean
  /** Fields that the engine does not keep to. */
  ignored: readonly string[]
  answerFormat: TranscriptionAnswerFormat
}

/** Returns the validated request and its reference to the audio. Pure. Throws Failure with every invalid field. */
export function audioIn(
  task: TranscriptionTask,
  raw: unknown,
): Pick<PreparedTranscription, 'sound'> & { request: TranscriptionRequest } {
  const request = parsed(transcriptionRequests[task], raw)
  const field = audioFields.find(name => request[name] != null)!
  return { request, sound: { field, value: request[field]! } }
}

/** Formats that can be streamed. Others need the whole text. */
const streamedFormats: ReadonlySet<TranscriptionFormat> = new Set(['json', 'text', 'diarized_json'])

/**
 * Formats that need the times of segments. The engine is asked for times for these alone: with times, vLLM leaves out
 * text that has none, and refuses models that cannot tell them.
 */
const timedFormats: ReadonlySet<TranscriptionFormat> = new Set(['verbose_json', 'srt', 'vtt'])

/** Checks a request, except its audio, and translates it for the engine. Pure. Throws Failure. */
export function prepareTranscription(task: TranscriptionTask, raw: unknown, catalog: ModelSet): PreparedTranscription {
  const { request, sound } = audioIn(task, raw)
  const entry = modelFor(transcriptions[task], request.model, catalog)
  const format = request.response_format ?? 'json'
  const words = request.timestamp_granularities?.includes('word') ?? false
  if (request.timestamp_granularities?.length && format !== 'verbose_json')
    throw invalid(
      'timestamp_granularities',
      `'timestamp_granularities' works with the response_format verbose_json only, not with ${format}.`,
    )
  const logprobs = (request.include?.length ?? 0) > 0
  if (logprobs && format !== 'json')
    throw invalid('include', `'include' works with the response_format json only, not with ${format}.`)
  const speakers = format === 'diarized_json' || request.diarize === true
  const requireFeature = featureCheck(entry)
  requireFeature(speakers, 'speakers', request.diarize ? 'diarize' : 'response_format')
  requireFeature(request.known_speaker_references?.length, 'speakers', 'known_speaker_references')
  requireFeature(format === 'srt' || format === 'vtt', 'segments', 'response_format')
  requireFeature(words, 'words', 'timestamp_granularities')
  requireFeature(logprobs, 'logprobs', 'include')
  const language = requestedLanguage(request.language) ?? null
  const stream = request.stream === true && streamedFormats.has(format)
  const engineStreams = stream && entry.traits.features.has('transcription_stream')
  const filters = entry.traits.vadFilter === true || entry.extraParams.includes('vad_filter')
  const engineFormat =
    format === 'diarized_json'
      ? format
      : timedFormats.has(format) && entry.traits.features.has('segments')
        ? 'verbose_json'
        : 'json'
  return {
    task,
    modelId: entry.id,
    route: entry.traits.routes[operationOf(task)]!,
    fields: fieldsOf({
      model: entry.traits.upstreamId,
      response_format: engineFormat,
      language: language ?? undefined,
      prompt: request.prompt,
      temperature: request.temperature,
      'timestamp_granularities[]': words ? ['word', 'segment'] : undefined,
      stream: engineStreams || undefined,
      'include[]': logprobs ? ['logprobs'] : undefined,
      chunking_strategy: request.chunking_strategy,
      diarize: request.diarize || undefined,
      'known_speaker_names[]': request.known_speaker_names,
      translate: operationOf(task) === 'translate' && entry.traits.translateField ? true : undefined,
      vad_filter: (filters && request.vad_filter) || undefined,
      ...extraFields(raw, entry),
    }),
    sound,
    speakers: request.known_speaker_references ?? [],
    stream,
    engineStreams,
    ignored: request.vad_filter && !filters ? ['vad_filter'] : [],
    answerFormat: { task, modelId: entry.id, format, words, logprobs, language, seconds: 0, requestId: null },
  }
}

/**
 * Returns the inputs to store for a job, without the audio, whose file the caller adds as `file_id`: the known fields
 * of the request and the extra fields that the model's configuration allows. A job is not streamed, and its result has
 * one form. Throws Failure with every invalid field.
 */
export function transcriptionInputs(
  task: TranscriptionTask,
  raw: TranscriptionRequest,
  entry: Pick<ModelSetEntry, 'extraParams'>,
): Record<string, unknown> {
  const { request } = audioIn(task, jobRequest(raw))
  const inputs: Record<string, unknown> = {
    ...extraFields(raw, entry),
    ...request,
    response_format: raw.response_format ?? undefined,
  }
  for (const name of [...audioFields, 'stream', 'include']) delete inputs[name]
  return inputs
}

/** Returns the inputs to store for a job, with its audio and the recordings of known speakers as files. */
export const withFiles = (
  inputs: Record<string, unknown>,
  file_id: string,
  speakers: readonly string[],
): Record<string, unknown> => ({
  ...inputs,
  file_id,
  ...(speakers.length > 0 ? { known_speaker_references: speakers } : {}),
})

/** Returns the request of a job, whose result is always complete. An unknown format stays, to be refused later. */
export function jobRequest(inputs: TranscriptionRequest): TranscriptionRequest {
  const format = inputs.response_format ?? 'json'
  const isIncomplete = format !== 'diarized_json' && transcriptionFormats.includes(format)
  return { ...inputs, stream: false, include: null, response_format: isIncomplete ? 'verbose_json' : format }
}

/** The field of the recording of a known speaker. */
export const speakerField = (at: number): string => `known_speaker_references[${at}]`

/** Returns the recordings of known speakers as fields of the form, the same for every engine: data: URLs. */
export async function speakerFields(
  { speakers }: Pick<PreparedTranscription, 'speakers'>,
  media: Pick<Media, 'samples'>,
  sender: MediaSender,
  inline?: ReadonlyMap<string, MediaInput>,
): Promise<PreparedTranscription['fields']> {
  const fields: PreparedTranscription['fields'] = []
  for (const [at, value] of speakers.entries()) {
    const audio = { field: speakerField(at), value: inline?.get(value) ?? value, maxSeconds: longestSpeaker }
    fields.push(['known_speaker_references[]', await shortAudioUrl(media, sender, audio)])
  }
  return fields
}

/** Lists become repeated fields, and objects JSON. Absent values are omitted. */
function fieldsOf(values: Record<string, unknown>): [string, string][] {
  return Object.entries(values).flatMap(([name, value]) => {
    if (value === undefined || value === null) return []
    const list = Array.isArray(value) ? (value as unknown[]) : [value]
    return list.map((one): [string, string] => [name, typeof one === 'string' ? one : JSON.stringify(one)])
  })
}
