import { buffer } from 'node:stream/consumers'
import { Failure } from '../../../core/failure.ts'
import { ignoredHeader, ignoredText } from '../../../core/ignored.ts'
import type { CallAttempt, CallEnd } from '../../../core/jobs/call.ts'
import { callFallbacks } from '../../../core/jobs/call-fallbacks.ts'
import type { DecodedAudio } from '../../../core/media/audio-decoder.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import { catalogOfWork } from '../../../core/models/model-names.ts'
import type { TranscriptionTask } from '../../../core/schemas/task.ts'
import type { Usage } from '../../../core/store/store.ts'
import { expectedGpuMs } from '../../../core/tasks/metering.ts'
import type { EngineStream } from '../../../core/tasks/protocols/engine-stream.ts'
import { audioFailure } from '../../../core/tasks/protocols/openai-audio.ts'
import { audioProtocol } from '../../../core/tasks/protocols/protocols.ts'
import { estimateOf } from '../../../core/tasks/registry.ts'
import {
  type PreparedTranscription,
  prepareTranscription,
  speakerFields,
} from '../../../core/tasks/transcription/transcription.ts'
import {
  Transcription,
  TranscriptionForm,
  TranscriptionRequest,
  TranslationForm,
  TranslationRequest,
} from '../../../core/tasks/transcription/transcription-request.ts'
import { eventDataIn, transcriptionPart } from '../../../core/tasks/transcription/transcription-stream.ts'
import { spoken, transcriptionType } from '../../../core/tasks/transcription/transcription-text.ts'
import { noUsage } from '../../../core/usage.ts'
import { sendPieces, withFirstPiece } from '../../http/answer/send-pieces.ts'
import { eventsHead } from '../../http/answer/sse.ts'
import { errorFrame, errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { answeredBefore, keepAnswer } from '../../http/request/idempotency.ts'
import type { Owners } from '../../http/request/owners.ts'
import { preferenceOf } from '../../http/request/prefer.ts'
import { routeOf } from '../../http/request/route.ts'
import { respondAsync } from '../../views/job-record.ts'
import { endOfFailure, runCall } from '../../work/run-call.ts'
import { answerLater } from '../../work/submit.ts'
import { submitTranscription, type TranscriptionJobOwners } from '../../work/submitters.ts'
import { type AudioBody, readAudioBody } from './audio-body.ts'

const eventText = (event: object) => `data: ${JSON.stringify(event)}\n\n`

/** Whether the engine answers with server-sent events, as it was asked to. */
const isEventStream = ({ contentType }: EngineStream) => /^text\/event-stream\b/i.test(contentType)

/** What a relayed stream has reported so far. */
interface RelayedText {
  text: string
  usage: Usage
  failure?: Failure
}

/**
 * Relays the stream of an engine in OpenAI's form, as the engine sends it. Calls `begin` before the first event. Rejects
 * with Failure for what fails before that; a later failure is the last event.
 */
async function relayTranscription(
  exchange: ClientExchange,
  stream: EngineStream,
  seconds: number,
  begin: () => void,
): Promise<CallEnd & { how: 'completed' | 'failed' | 'cancelled' }> {
  const audioMs = Math.round(seconds * 1000)
  const heard: RelayedText = { text: '', usage: { inputTokens: 0, outputTokens: 0, audioMs } }
  const pieces = await withFirstPiece(eventsOf(exchange, stream, seconds, heard), () => void stream.bytes.destroy())
  exchange.abortSource.throwIfAborted()
  begin()
  exchange.head(200, ...eventsHead)
  try {
    await sendPieces(exchange, pieces)
    if (exchange.abortSource.aborted) throw exchange.abortSource.reason
  } catch (thrown) {
    const failure = audioFailure(thrown, exchange.abortSource)
    if (failure.code === 'cancelled') return { how: 'cancelled', usage: heard.usage }
    return { how: 'failed', failure, usage: heard.usage }
  }
  const { failure, usage } = heard
  return failure ? { how: 'failed', failure, usage } : { how: 'completed', usage }
}

async function* eventsOf(exchange: ClientExchange, { bytes }: EngineStream, seconds: number, heard: RelayedText) {
  let begun = false
  let segments = 0
  let whole: { text?: string; logprobs?: object[] } = {}
  const event = (data: object): Uint8Array => {
    begun = true
    return Buffer.from(eventText(data))
  }
  try {
    for await (const data of eventDataIn(bytes)) {
      const part = transcriptionPart(data, seconds)
      if (part?.kind === 'delta') {
        // Whisper begins every text with a space.
        const delta = heard.text === '' ? part.text.trimStart() : part.text
        if (delta === '') continue
        heard.text += delta
        const more = part.logprobs ? { logprobs: part.logprobs } : {}
        yield event({ type: 'transcript.text.delta', delta, ...more })
      } else if (part?.kind === 'segment') yield event(spoken(part.segment, segments++))
      else if (part) {
        const { kind: _, usage, ...rest } = part
        whole = { ...whole, ...rest }
        if (usage) heard.usage = { ...heard.usage, ...usage }
      }
    }
    // Speaches ends its stream with an empty text.
    const text = (whole.text || heard.text).trim()
    const logprobs = whole.logprobs ? { logprobs: whole.logprobs } : {}
    yield event({ type: 'transcript.text.done', text, ...logprobs, usage: durationUsage(seconds) })
  } catch (thrown) {
    const failure = audioFailure(thrown, exchange.abortSource)
    if (!begun || failure.code === 'cancelled') throw failure
    heard.failure = failure
    yield Buffer.from(errorFrame(failure, exchange.id))
  }
}

const durationUsage = (seconds: number) => ({ type: 'duration', seconds: Math.ceil(Math.round(seconds * 1000) / 1000) })

/** A whole transcription, in the form of `json` or `diarized_json`. */
interface WholeTranscription {
  text: string
  logprobs?: object[]
  segments?: object[]
  usage: object
}

/** Sends a whole transcription as events, for engines that answer once they have the whole text. No `[DONE]` follows. */
function sendWhole(exchange: ClientExchange, { text, logprobs, segments = [], usage }: WholeTranscription) {
  const more = logprobs ? { logprobs } : {}
  const events = [
    ...(text === '' || segments.length > 0 ? [] : [{ type: 'transcript.text.delta', delta: text, ...more }]),
    ...segments,
    { type: 'transcript.text.done', text, ...more, usage },
  ]
  const [contentType, headers] = eventsHead
  exchange.send(200, events.map(eventText).join(''), contentType, headers)
}

const route = routeOf({ tag: 'Audio' })

const shapes = {
  'std/audio-transcription': TranscriptionRequest.shape,
  'std/audio-translation': TranslationRequest.shape,
}

type TranscriptionOwners = TranscriptionJobOwners & Owners<'cpu' | 'idempotency' | 'throughput' | 'timings'>

/**
 * Answers a speech-to-text request: validates the form or the JSON and translates it for the engine, asks admission,
 * fetches and decodes the audio, waits for a slot unless it is silent, sends the engine's answer in the requested format, and stores one
 * record.
 */
async function answerTranscription(task: TranscriptionTask, exchange: ClientExchange, owners: TranscriptionOwners) {
  const { admission, media, registry } = owners
  admission.requireRoom()
  const createdAt = Date.now()
  const prefer = preferenceOf(exchange.req.headers.prefer)
  await using body = await readAudioBody(exchange, shapes[task], owners)
  const prepared = prepareTranscription(task, body.value, registry.catalog())
  // Awaited here: the files of the form are removed when this function returns.
  if (prefer.later && !prepared.stream) return await respondLater(exchange, task, body, owners)
  const admitted = admission.admit(exchange.caller, {
    kind: 'call',
    task,
    modelId: prepared.modelId,
    // Its length is not known before it is fetched: something must be left.
    estimate: () => estimateOf(task, {}, 1),
  })

  const type = transcriptionType(prepared.answerFormat.format)
  if (await answeredBefore(exchange, owners, type)) return
  const { field, value } = prepared.sound
  admission.requireQueueRoom(exchange.caller, admitted)
  // Fetched before the call takes a slot that others could use.
  const sound = await media.decodeAudio(exchange.sender, field, body.file ?? exchange.inline.get(value) ?? value)
  const recordings = await recordingsOf(exchange, prepared, sound, owners)
  if (admission.fallbacksFor(exchange.caller, admitted.model).length === 0) exchange.releaseBody()
  const estimate = () => ({
    usage: { ...noUsage, audioMs: Math.ceil(sound.seconds * 1000), gpuMs: expectedGpuMs },
  })
  const measured = admission.estimated(admitted, estimate)
  const heard: Heard = { sound, begun: false }
  const attemptWith = (one: PreparedTranscription): CallAttempt => {
    const complete = { ...one, fields: [...one.fields, ...recordings] }
    return (lease, { id }) => attempt(exchange, complete, heard, { lease, id }, owners)
  }
  // The decoded audio is the same for every model.
  const fallbacks = callFallbacks(
    exchange.caller,
    admitted,
    async work => {
      if (heard.begun) return undefined
      const other = prepareTranscription(task, body.value, catalogOfWork(registry.catalog(), work))
      const taken = admission.admit(exchange.caller, { kind: 'call', task, modelId: work.modelId, estimate })
      return { admitted: taken, attempt: attemptWith(other) }
    },
    owners,
  )
  try {
    const { stream } = prepared
    const work = { admitted: measured, createdAt, waitMs: prefer.waitMs, stream, withoutEngine: sound.silent }
    await runCall(exchange, { ...work, fallbacks }, attemptWith(prepared), owners)
  } finally {
    // Not awaited: nobody needs to wait until the decoded audio is deleted.
    void sound[Symbol.asyncDispose]()
  }
}

/** Resolves with the recordings of known speakers, as fields. If that fails, the decoded audio is removed. */
async function recordingsOf(
  exchange: ClientExchange,
  prepared: PreparedTranscription,
  sound: DecodedAudio,
  { media }: Owners<'media'>,
): Promise<PreparedTranscription['fields']> {
  try {
    return await speakerFields(prepared, media, exchange.sender, exchange.inline)
  } catch (thrown) {
    await sound[Symbol.asyncDispose]()
    throw thrown
  }
}

/** Answers `Prefer: respond-async`: submits the same request as a durable job. */
async function respondLater(
  exchange: ClientExchange,
  task: TranscriptionTask,
  { value, file }: AudioBody,
  owners: TranscriptionJobOwners,
): Promise<void> {
  const options = { task, inputs: value as object, sent: file, body: value }
  const job = await submitTranscription(exchange, options, owners)
  answerLater(exchange, job)
}

/** The decoded audio of a request. Once the caller has received a byte of the answer, no other model is asked. */
interface Heard {
  sound: DecodedAudio
  begun: boolean
}

async function attempt(
  exchange: ClientExchange,
  prepared: PreparedTranscription,
  heard: Heard,
  { lease, id }: { lease: Lease; id: string },
  { config, cpu, throughput }: Owners<'config' | 'cpu' | 'throughput'>,
): Promise<CallEnd> {
  let answer: Buffer
  const { sound } = heard
  const begin = () => {
    heard.begun = true
    exchange.releaseBody()
    if (prepared.ignored.length > 0 && !sound.silent) exchange.header(ignoredHeader, ignoredText(prepared.ignored))
  }
  const protocol = audioProtocol(prepared.route)
  const request = { path: prepared.route.path, fields: prepared.fields }
  const sending = [lease, request, sound, config.limits.engine_answer, exchange.abortSource] as const
  try {
    if (prepared.engineStreams && !sound.silent) {
      const stream = await protocol.transcribeStream(...sending)
      if (isEventStream(stream)) {
        const end = await relayTranscription(exchange, stream, sound.seconds, begin)
        if (end.how === 'completed') throughput.used(lease.modelId, end.usage)
        return end
      }
      answer = await buffer(stream.bytes)
    } else answer = await protocol.transcribe(...sending)
  } catch (thrown) {
    return endOfFailure(thrown)
  }
  const answerFormat = { ...prepared.answerFormat, seconds: sound.seconds, requestId: exchange.id }
  // A stream of text has no other parts than JSON.
  const format = prepared.stream && answerFormat.format === 'text' ? 'json' : answerFormat.format
  const { body, usage } = await cpu.shape([answer], { ...answerFormat, format })
  throughput.used(lease.modelId, usage)
  // A call that was cancelled while its answer was reshaped has been answered.
  exchange.abortSource.throwIfAborted()
  begin()
  if (prepared.stream) sendWhole(exchange, JSON.parse(textOf(body)) as Parameters<typeof sendWhole>[1])
  else {
    await keepAnswer(exchange, body, id)
    exchange.send(200, body, transcriptionType(format))
  }
  return { how: 'completed', usage }
}

const textOf = (body: string | Uint8Array) =>
  typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')

const facts = {
  bucket: 'jobs',
  events: 'TranscriptionEvent',
  media: ['text/plain'],
  otherAnswers: respondAsync,
  errorCodes: [...errorGroups.submit, ...errorGroups.wait, ...errorGroups.media],
} as const
const sound =
  'Send the audio as the `file` of a form, or as `url` or `file_id` in a form or in JSON: FLAC, MP3, MP4, M4A, OGG, WAV or WebM.'
const forms =
  '`response_format` sets the form of the answer: `text`, `srt` and `vtt` are plain text. With `stream: true` the answer is a stream of server-sent events, without a `[DONE]`.'

/** A millisecond of silence, as a WAV file. */
const silence = 'data:audio/wav;base64,UklGRjQAAABXQVZFZm10IBAAAAABAAEAgD4AAIA+AAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA'

export const transcriptionRoutes = (owners: TranscriptionOwners) => [
  route('POST /std/v1/audio/transcriptions', 'user:write', {
    ...facts,
    summary: 'Transcribe audio',
    description: `Returns the text of audio in its language. ${sound} ${forms}`,
    body: TranscriptionRequest,
    form: TranscriptionForm,
    example: { model: 'infer/tiny-transcription', url: silence, response_format: 'verbose_json' },
    response: Transcription,
    answer: exchange => answerTranscription('std/audio-transcription', exchange, owners),
  }),
  route('POST /std/v1/audio/translations', 'user:write', {
    ...facts,
    summary: 'Translate audio',
    description: `Returns the text of audio in English. ${sound} ${forms}`,
    body: TranslationRequest,
    form: TranslationForm,
    example: { model: 'whisper', url: silence, response_format: 'verbose_json' },
    response: Transcription,
    answer: exchange => answerTranscription('std/audio-translation', exchange, owners),
  }),
]
