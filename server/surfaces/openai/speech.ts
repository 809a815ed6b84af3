import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import type { CallAttempt, CallEnd } from '../../../core/jobs/call.ts'
import { callFallbacks } from '../../../core/jobs/call-fallbacks.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import { catalogOfWork } from '../../../core/models/model-names.ts'
import { array, namedObject, optionalStringUpTo, string } from '../../../core/schemas/fields.ts'
import { contentTypeOf, speechForms } from '../../../core/schemas/speech-format.ts'
import type { Usage } from '../../../core/store/store.ts'
import { modelFor } from '../../../core/tasks/catalog.ts'
import { audioFailure } from '../../../core/tasks/protocols/openai-audio.ts'
import { audioProtocol } from '../../../core/tasks/protocols/protocols.ts'
import { estimateOf } from '../../../core/tasks/registry.ts'
import {
  type PreparedSpeech,
  prepareSpeech,
  speechBody,
  speech as speechName,
  speechRecording,
  speechUsage,
} from '../../../core/tasks/speech/speech.ts'
import { SpeechRequest } from '../../../core/tasks/speech/speech-request.ts'
import { noUsage } from '../../../core/usage.ts'
import { sendPieces, withFirstPiece } from '../../http/answer/send-pieces.ts'
import { eventsHead } from '../../http/answer/sse.ts'
import { errorFrame, errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { answeredBefore } from '../../http/request/idempotency.ts'
import type { Owners } from '../../http/request/owners.ts'
import { preferenceOf } from '../../http/request/prefer.ts'
import { routeOf } from '../../http/request/route.ts'
import { respondAsync } from '../../views/job-record.ts'
import { speechModels, voicesOf } from '../../views/voices.ts'
import { runCall } from '../../work/run-call.ts'
import { answerLater } from '../../work/submit.ts'
import { type SpeechJobOwners, submitSpeech } from '../../work/submitters.ts'
import { readAudioJson } from './audio-body.ts'

const route = routeOf({ tag: 'Audio' })

const Voices = namedObject('VoiceList', 'Voices by model.', {
  object: z.literal('list'),
  data: array(
    'Models that speak, with their voices.',
    z.object({
      model: string('Id of the model.'),
      voices: array(
        'The voices. Empty if only a running engine can report them and none runs, or it is busy.',
        z.object({
          id: string('Id of the voice: the value of `voice` in a request.'),
          name: string('Name for people.'),
        }),
      ),
    }),
  ),
})

export const speechRoutes = (owners: SpeechOwners) => [
  route('POST /std/v1/audio/speech', 'user:write', {
    bucket: 'jobs',
    summary: 'Create speech',
    description:
      'Speaks a text. The answer is the audio while it is generated; with `stream_format: "sse"` it is a stream of server-sent events with audio in base64, without a `[DONE]`. As a job (`std/audio-speech`) the audio becomes a file. With `reference_audio` it speaks with the voice of a recording, if the engine clones voices. Speech is metered in characters.',
    media: ['audio/mpeg', 'audio/wav', 'audio/ogg', 'audio/aac', 'audio/flac', 'audio/pcm'],
    events: 'SpeechEvent',
    otherAnswers: respondAsync,
    errorCodes: [...errorGroups.submit, ...errorGroups.wait, ...errorGroups.media],
    body: SpeechRequest,
    example: { model: 'infer/tiny-speech', input: 'Hello!', voice: 'alto', response_format: 'wav' },
    answer: exchange => answerSpeech(exchange, owners),
  }),
  route('GET /std/v1/audio/voices', 'user:read', {
    summary: 'List voices',
    description:
      'Returns the voices of the models that speak. For a running engine the list includes the voices that the engine reports.',
    errorCodes: ['invalid_value', 'model_not_found', 'unsupported_task'],
    query: z.object({ model: optionalStringUpTo(256, 'Only voices of this model.') }),
    response: Voices,
    handle: async ({ query }, exchange) => {
      if (query.model !== undefined) modelFor(speechName, query.model, owners.registry.catalog())
      const models = speechModels(exchange, owners).filter(({ id }) => query.model === undefined || query.model === id)
      const data = await Promise.all(
        models.map(async model => {
          const voices = (await voicesOf(model, owners)).map(({ id, name }) => ({ id, name }))
          return { model: model.id, voices }
        }),
      )
      return { object: 'list' as const, data }
    },
  }),
]

type SpeechOwners = SpeechJobOwners & Owners<'cpu' | 'idempotency' | 'throughput' | 'timings'>

/**
 * Answers a text-to-speech request: validates the body and translates it for the engine, asks admission, waits for a
 * slot, relays or converts the engine's audio, and stores one record.
 */
async function answerSpeech(exchange: ClientExchange, owners: SpeechOwners) {
  const { admission, conversion, media, registry } = owners
  admission.requireRoom()
  const createdAt = Date.now()
  const prefer = preferenceOf(exchange.req.headers.prefer)
  const value = await readAudioJson(exchange, owners)
  if (prefer.later) return respondLater(exchange, value, owners)
  const prepared = prepareSpeech(value, registry.catalog())
  const { task, modelId } = prepared
  const estimate = () => estimateOf(task, value as Record<string, unknown>)
  const admitted = admission.admit(exchange.caller, { kind: 'call', task, modelId, estimate })
  await conversion.check(prepared.engineFormat, prepared.format)

  const answer: AnswerProgress = { begun: false }
  let recording: string | undefined
  const attemptWith =
    (one: PreparedSpeech): CallAttempt =>
    lease =>
      synthesize(exchange, { ...one, body: speechBody(one, recording) }, { lease, answer }, owners)
  const fallbacks = callFallbacks(
    exchange.caller,
    admitted,
    async work => {
      if (answer.begun) return undefined
      const other = prepareSpeech(value, catalogOfWork(registry.catalog(), work))
      const taken = admission.admit(exchange.caller, { kind: 'call', task, modelId: work.modelId, estimate })
      await conversion.check(other.engineFormat, other.format)
      return { admitted: taken, attempt: attemptWith(other) }
    },
    owners,
  )
  if (prepared.reference) admission.requireQueueRoom(exchange.caller, admitted)
  // A recording is fetched before the call takes a slot that others could use.
  recording = await speechRecording(prepared, media, exchange.sender, exchange.inline)
  // A fallback needs the request again.
  if (!fallbacks) exchange.releaseBody()
  if (await answeredBefore(exchange, owners)) return
  const work = { admitted, createdAt, waitMs: prefer.waitMs, stream: true, fallbacks }
  await runCall(exchange, work, attemptWith(prepared), owners)
}

/** The answer to one request. Once the caller has received a byte of it, no other model is asked. */
interface AnswerProgress {
  begun: boolean
}

/** Answers `Prefer: respond-async`: submits the same request as a durable job. */
async function respondLater(exchange: ClientExchange, body: unknown, owners: SpeechJobOwners) {
  answerLater(exchange, await submitSpeech(exchange, { inputs: body, body }, owners))
}

/** Makes one attempt. Sends nothing before the first audio, so until then another engine may be tried. */
async function synthesize(
  exchange: ClientExchange,
  prepared: PreparedSpeech,
  { lease, answer }: { lease: Lease; answer: AnswerProgress },
  { config, conversion, throughput }: Owners<'config' | 'conversion' | 'throughput'>,
): Promise<CallEnd> {
  const { route, body, format, events, characters } = prepared
  let seconds: () => number | undefined = () => undefined
  const usageSoFar = () => speechUsage(characters, seconds())
  try {
    const spoken = await audioProtocol(route).synthesize(
      lease,
      { path: route.path, body, maxBytes: config.limits.output_size },
      exchange.abortSource,
    )
    const converted = await conversion.convert(spoken, prepared)
    seconds = () => converted.seconds()
    const pieces = await withFirstPiece<Buffer>(converted.audio, () => void converted.audio.destroy())
    exchange.abortSource.throwIfAborted()
    answer.begun = true
    exchange.releaseBody()
    if (events) {
      exchange.head(200, ...eventsHead)
      const outcome: { failure?: Failure } = {}
      await sendPieces(exchange, eventsOf(pieces, usageSoFar, exchange, outcome))
      if (outcome.failure) return { how: 'failed', failure: outcome.failure, usage: usageSoFar() }
    } else {
      const name = `speech.${speechForms[format].ending}`
      const disposition = `attachment; filename="${name}"`
      exchange.head(200, contentTypeOf(format, spoken.contentType, converted.rate), [
        'content-disposition',
        disposition,
      ])
      await sendPieces(exchange, pieces)
    }
    // A client that disconnected before the end, or read too slowly, cancels the call: this is not an error.
    if (exchange.abortSource.aborted) throw exchange.abortSource.reason
    const usage = usageSoFar()
    throughput.used(lease.modelId, usage)
    return { how: 'completed', usage }
  } catch (thrown) {
    const failure = audioFailure(thrown, exchange.abortSource)
    const used = answer.begun ? usageSoFar() : noUsage
    if (failure.code === 'cancelled') return { how: 'cancelled', usage: used }
    if (!answer.begun && failure.code === 'worker_error') return { how: 'retry', failure }
    return { how: 'failed', failure, usage: used }
  }
}

/** Returns the audio as the events of OpenAI's speech stream. A failure is the last event, as in every stream. */
async function* eventsOf(
  sound: AsyncIterable<Buffer>,
  usageSoFar: () => Usage,
  exchange: ClientExchange,
  outcome: { failure?: Failure },
): AsyncGenerator<Uint8Array> {
  const event = (data: object) => Buffer.from(`data: ${JSON.stringify(data)}\n\n`)
  try {
    for await (const piece of sound) yield event({ type: 'speech.audio.delta', audio: piece.toString('base64') })
  } catch (thrown) {
    const failure = audioFailure(thrown, exchange.abortSource)
    if (failure.code === 'cancelled') throw failure
    outcome.failure = failure
    yield Buffer.from(errorFrame(failure, exchange.id))
    return
  }
  const { characters = 0, audioMs = 0 } = usageSoFar()
  const tokens = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
  const usage = { ...tokens, characters, audio_seconds: audioMs / 1000 }
  yield event({ type: 'speech.audio.done', usage })
}
