import { Failure } from '../../failure.ts'
import type { Catalog, CatalogEntry } from '../../models/catalog.ts'
import type { EngineRoute } from '../../models/fleet.ts'
import type { Feature } from '../../models/model.ts'
import { failureOf } from '../../schemas/issues.ts'
import type { TranscriptionTask } from '../../schemas/task.ts'
import { checkFeatures, extraFields, modelFor } from '../catalog.ts'
import type { TaskName } from '../task.ts'
import { languageCode } from './languages.ts'
import {
  audioFields,
  type TranscriptionFormat,
  type TranscriptionRequest,
  transcriptionFormats,
  transcriptionRequests,
} from './transcription-request.ts'

/** Names the tasks. */
export const transcriptions = {
  'std/audio-transcription': { id: 'std/audio-transcription', title: 'speech to text' },
  'std/audio-translation': { id: 'std/audio-translation', title: 'speech to English text' },
} as const satisfies Record<TranscriptionTask, TaskName>

/** What `shapeTranscription` must know to put an engine's answer into the caller's words. */
export interface TranscriptionAnswerFormat {
  task: TranscriptionTask
  modelId: string
  format: TranscriptionFormat
  words: boolean
  logprobs: boolean
  /** The code that was asked for; null where it is to be found out. */
  language: string | null
  /** How long the sound is that was decoded; known once it is. */
  seconds: number
  /** The request, for clients that read it in the body; null for a job. */
  requestId: string | null
  /** Whether it is a result, which holds all that was heard in whatever form it was asked for. */
  result?: boolean
}

/** Whether each segment is shown with how far its text can be compressed, which engines leave to be found out. */
export const showsCompression = ({ format, result }: Pick<TranscriptionAnswerFormat, 'format' | 'result'>): boolean =>
  result === true || format === 'verbose_json'

/** A request that has been checked and put into the engine's words, but for the sound. */
export interface PreparedTranscription {
  task: TranscriptionTask
  modelId: string
  route: EngineRoute
  /** Of the form that the engine is sent, without the file. */
  fields: [name: string, value: string][]
  /** Where the sound is named, and how; what stands there does not matter where it came as a file of a form. */
  sound: { field: (typeof audioFields)[number]; value: string }
  stream: boolean
  answerFormat: TranscriptionAnswerFormat
}

/** A request of the right form, and the sound that it names. Pure. Throws Failure with every wrong field. */
export function audioIn(
  task: TranscriptionTask,
  raw: unknown,
): Pick<PreparedTranscription, 'sound'> & { request: TranscriptionRequest } {
  const checked = transcriptionRequests[task].safeParse(raw)
  if (!checked.success) throw failureOf(checked.error, raw)
  const request = checked.data
  const field = audioFields.find(name => request[name] != null)!
  return { request, sound: { field, value: request[field]! } }
}

/** Checks a request. Pure. Throws Failure for everything that is wrong with it but the sound. */
export function prepareTranscription(task: TranscriptionTask, raw: unknown, catalog: Catalog): PreparedTranscription {
  const { request, sound } = audioIn(task, raw)
  const entry = modelFor(transcriptions[task], request.model, catalog)
  const format = request.response_format ?? 'json'
  const words = request.timestamp_granularities?.includes('word') ?? false
  if (request.timestamp_granularities?.length && format !== 'verbose_json')
    throw new Failure(
      'invalid_value',
      `'timestamp_granularities' goes with the response_format verbose_json only, not with ${format}.`,
      { param: 'timestamp_granularities' },
    )
  const logprobs = (request.include?.length ?? 0) > 0
  if (logprobs && format !== 'json')
    throw new Failure('invalid_value', `'include' goes with the response_format json only, not with ${format}.`, {
      param: 'include',
    })
  const speakers = format === 'diarized_json' || request.diarize === true
  const used: [Feature, string][] = []
  if (speakers) used.push(['speakers', request.diarize ? 'diarize' : 'response_format'])
  if (format === 'srt' || format === 'vtt') used.push(['segments', 'response_format'])
  if (words) used.push(['words', 'timestamp_granularities'])
  if (logprobs) used.push(['logprobs', 'include'])
  checkFeatures(used, entry)
  const language = request.language == null ? null : languageCode(request.language)!
  const asked = logprobs
    ? 'json'
    : format === 'diarized_json'
      ? format
      : entry.traits.features.has('segments')
        ? 'verbose_json'
        : 'json'
  return {
    task,
    modelId: entry.id,
    route: entry.traits.routes[task]!,
    fields: fieldsOf({
      model: entry.traits.upstreamId,
      response_format: asked,
      language: language ?? undefined,
      prompt: request.prompt,
      temperature: request.temperature,
      'timestamp_granularities[]': words ? ['word', 'segment'] : undefined,
      'include[]': logprobs ? ['logprobs'] : undefined,
      chunking_strategy: request.chunking_strategy,
      diarize: request.diarize || undefined,
      translate: task === 'std/audio-translation' && entry.traits.translateField ? true : undefined,
      ...extraFields(raw, entry),
    }),
    sound,
    stream: request.stream === true && (format === 'json' || format === 'text'),
    answerFormat: { task, modelId: entry.id, format, words, logprobs, language, seconds: 0, requestId: null },
  }
}

/**
 * The inputs of a durable job but for the sound, whose file is to stand there as `file_id`: of the request, what is known
 * here and what the model's configuration lets through. A job is not streamed, and its result has one form. Throws
 * Failure with every wrong field.
 */
export function transcriptionInputs(
  task: TranscriptionTask,
  raw: TranscriptionRequest,
  entry: Pick<CatalogEntry, 'extraParams'>,
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

/** The request of such a job: whatever form was asked for, all of it is kept. What is no form is left to be refused. */
export function jobRequest(inputs: TranscriptionRequest): TranscriptionRequest {
  const format = inputs.response_format ?? 'json'
  const isLess = format !== 'diarized_json' && transcriptionFormats.includes(format)
  return { ...inputs, stream: false, include: null, response_format: isLess ? 'verbose_json' : format }
}

/** Lists are repeated, objects are JSON; what is absent is left out. */
function fieldsOf(values: Record<string, unknown>): [string, string][] {
  return Object.entries(values).flatMap(([name, value]) => {
    if (value === undefined || value === null) return []
    const list = Array.isArray(value) ? (value as unknown[]) : [value]
    return list.map((one): [string, string] => [name, typeof one === 'string' ? one : JSON.stringify(one)])
  })
}
