import { buffer } from 'node:stream/consumers'
import { Failure } from '../../../core/failure.ts'
import type { CallEnd } from '../../../core/jobs/call.ts'
import type { DecodedAudio } from '../../../core/media/audio-decoder.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import type { TranscriptionTask } from '../../../core/schemas/task.ts'
import { expectedGpuMs } from '../../../core/tasks/metering.ts'
import { audioProtocol } from '../../../core/tasks/protocols/protocols.ts'
import { estimateOf } from '../../../core/tasks/registry.ts'
import {
  type PreparedTranscription,
  prepareTranscription,
  transcriptionFields,
} from '../../../core/tasks/transcription/transcription.ts'
import {
  Transcription,
  TranscriptionForm,
  TranscriptionRequest,
  TranslationForm,
  TranslationRequest,
} from '../../../core/tasks/transcription/transcription-request.ts'
import { transcriptionType } from '../../../core/tasks/transcription/transcription-text.ts'
import { noUsage } from '../../../core/usage.ts'
import type { Call } from '../../http/request/call.ts'
import { errorGroups } from '../../http/request/error-groups.ts'
import { answeredBefore, keepAnswer } from '../../http/request/idempotency.ts'
import type { Owners } from '../../http/request/owners.ts'
import { preferenceOf } from '../../http/request/prefer.ts'
import { routeOf } from '../../http/request/route.ts'
import { respondAsync } from '../../views/job-record.ts'
import { runCall } from '../../work/run-call.ts'
import { answerLater } from '../../work/submit.ts'
import { submitTranscription, type TranscriptionJobOwners } from '../../work/submitters.ts'
import { type AudioBody, readAudioBody } from './audio-body.ts'
import { isEventStream, relayTranscription, sendWhole } from './transcription-events.ts'

const route = routeOf({ tag: 'Audio' })

const nothing = { inputTokens: 0, outputTokens: 0 }
const shapes = {
  'std/audio-transcription': TranscriptionRequest.shape,
  'std/audio-translation': TranslationRequest.shape,
}

type TranscriptionOwners = TranscriptionJobOwners & Pick<Owners, 'cpu' | 'idempotency' | 'throughput' | 'timings'>

/**
 * Returns the handler of a speech-to-text request: it validates the form or the JSON and translates it for the engine,
 * asks admission, fetches and decodes the audio, waits for a slot, sends the engine's answer in the requested format,
 * and stores one record.
 */
function transcribe(task: TranscriptionTask, owners: TranscriptionOwners): (call: Call) => Promise<void> {
  return call => answerTranscription(task, call, owners)
}

async function answerTranscription(task: TranscriptionTask, call: Call, owners: TranscriptionOwners): Promise<void> {
  const { admission, media, registry } = owners
  admission.requireRoom()
  const createdAt = Date.now()
  const prefer = preferenceOf(call.req.headers.prefer)
  await using body = await readAudioBody(call, shapes[task], owners)
  const prepared = prepareTranscription(task, body.value, registry.catalog())
  // Awaited here: the files of the form are removed when this function returns.
  if (prefer.later && !prepared.stream) return await respondLater(call, task, body, owners)
  const admitted = admission.admit(call.caller, {
    kind: 'call',
    task,
    modelId: prepared.modelId,
    // Its length is not known before it is fetched: something must be left.
    estimate: () => estimateOf(task, {}, 1),
  })

  const type = transcriptionType(prepared.answerFormat.format)
  if (await answeredBefore(call, owners, type)) return
  const { field, value } = prepared.sound
  const sender = { organizationId: call.caller.organizationId, origin: call.origin, signal: call.signal }
  admission.requireQueueRoom(admitted)
  // Fetched before the call takes a slot that others could use.
  const sound = await media.decodeAudio(sender, field, body.file ?? call.inline.get(value) ?? value)
  const fields = await fieldsFor(call, prepared, sound, owners)
  call.releaseBody()
  const measured = admission.estimated(admitted, () => ({
    usage: { ...noUsage, audioMs: Math.ceil(sound.seconds * 1000), gpuMs: expectedGpuMs },
  }))
  try {
    await runCall(
      call,
      { admitted: measured, createdAt, waitMs: prefer.waitMs, stream: prepared.stream },
      (lease, { id }) => attempt(call, { ...prepared, fields }, sound, { lease, id }, owners),
      owners,
    )
  } finally {
    // Not awaited: nobody needs to wait until the decoded audio is deleted.
    void sound[Symbol.asyncDispose]()
  }
}

/** Resolves with the fields for the engine. If that fails, the decoded audio is removed. */
async function fieldsFor(
  call: Call,
  prepared: PreparedTranscription,
  sound: DecodedAudio,
  { media }: Pick<Owners, 'media'>,
): Promise<PreparedTranscription['fields']> {
  const sender = { organizationId: call.caller.organizationId, origin: call.origin, signal: call.signal }
  try {
    return await transcriptionFields(prepared, media, sender, call.inline)
  } catch (thrown) {
    await sound[Symbol.asyncDispose]()
    throw thrown
  }
}

/** Answers `Prefer: respond-async`: submits the same request as a durable job. */
async function respondLater(
  call: Call,
  task: TranscriptionTask,
  { value, file }: AudioBody,
  owners: TranscriptionJobOwners,
): Promise<void> {
  const options = { task, inputs: value as object, sent: file, body: value }
  const job = await submitTranscription(call, options, owners)
  answerLater(call, job)
}

async function attempt(
  call: Call,
  prepared: PreparedTranscription,
  sound: DecodedAudio,
  { lease, id }: { lease: Lease; id: string },
  { config, cpu, throughput }: Pick<Owners, 'config' | 'cpu' | 'throughput'>,
): Promise<CallEnd> {
  let answer: Buffer
  const protocol = audioProtocol(prepared.route)
  const request = { path: prepared.route.path, fields: prepared.fields }
  const sending = [lease, request, sound, config.limits.engine_answer, call.abortSource] as const
  try {
    if (prepared.engineStreams) {
      const stream = await protocol.transcribeStream(...sending)
      if (isEventStream(stream)) {
        const end = await relayTranscription(call, stream, sound.seconds)
        if (end.how === 'completed') throughput.used(lease.modelId, end.usage)
        return end
      }
      answer = await buffer(stream.bytes)
    } else answer = await protocol.transcribe(...sending)
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (failure.code === 'cancelled') return { how: 'cancelled', usage: nothing }
    return failure.code === 'worker_error' ? { how: 'retry', failure } : { how: 'failed', failure, usage: nothing }
  }
  const answerFormat = { ...prepared.answerFormat, seconds: sound.seconds, requestId: call.id }
  // A stream of text has no other parts than JSON.
  const format = prepared.stream && answerFormat.format === 'text' ? 'json' : answerFormat.format
  const { body, usage } = await cpu.shape([answer], { ...answerFormat, format })
  throughput.used(lease.modelId, usage)
  // A call that was cancelled while its answer was reshaped has been answered.
  call.abortSource.throwIfAborted()
  if (prepared.stream) sendWhole(call, JSON.parse(textOf(body)) as Parameters<typeof sendWhole>[1])
  else {
    await keepAnswer(call, body, id)
    call.send(200, body, transcriptionType(format))
  }
  return { how: 'completed', usage }
}

const textOf = (body: string | Uint8Array): string =>
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

/** The OpenAI-compatible routes for transcription and translation. */
export const transcriptionRoutes = (owners: TranscriptionOwners) => [
  route('POST /std/v1/audio/transcriptions', 'user:write', {
    ...facts,
    summary: 'Transcribe audio',
    description: `Returns the text of audio in its language. ${sound} ${forms}`,
    body: TranscriptionRequest,
    form: TranscriptionForm,
    example: { model: 'infer/tiny-transcription', url: silence, response_format: 'verbose_json' },
    response: Transcription,
    answer: transcribe('std/audio-transcription', owners),
  }),
  route('POST /std/v1/audio/translations', 'user:write', {
    ...facts,
    summary: 'Translate audio',
    description: `Returns the text of audio in English. ${sound} ${forms}`,
    body: TranslationRequest,
    form: TranslationForm,
    example: { model: 'whisper', url: silence, response_format: 'verbose_json' },
    response: Transcription,
    answer: transcribe('std/audio-translation', owners),
  }),
]
