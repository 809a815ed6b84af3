import { Failure } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import type { MediaInput } from '../../core/media/media.ts'
import type { GenerationTask, ImageTask, Task, TextTask, TranscriptionTask } from '../../core/schemas/task.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { estimateOf, taskRecord } from '../../core/tasks/registry.ts'
import { checkRequestFields } from '../../core/tasks/request-fields.ts'
import { prepareSpeech, speechInputs } from '../../core/tasks/speech/speech.ts'
import type { RunnerName } from '../../core/tasks/task.ts'
import {
  jobRequest,
  prepareTranscription,
  speakerField,
  transcriptionInputs,
  withFiles,
} from '../../core/tasks/transcription/transcription.ts'
import type { TranscriptionRequest } from '../../core/tasks/transcription/transcription-request.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { Owners } from '../http/request/owners.ts'
import { checkInputSize, type JobTerms, submitJob, submittedBefore } from './submit.ts'
import { forget, type SubmitOwners, submitGeneration } from './submit-generation.ts'

export interface TextJobOptions {
  task: TextTask
  /** The body of the task's endpoint, as JSON text. */
  text: string
  terms: JobTerms
  /** The body that an idempotency key stands for. */
  body: unknown
  /** Whether to refuse inputs that the task does not know. */
  strict?: boolean
}

/** The owners that the submission of a text task needs. */
export type TextJobOwners = Owners<'admission' | 'config' | 'cpu' | 'jobs' | 'registry'>

/** Submits a text task as a durable job. Validates its inputs first: throws Failure for invalid ones. */
export async function submitText(
  exchange: ClientExchange,
  { task, text, terms, body, strict = false }: TextJobOptions,
  owners: TextJobOwners,
): Promise<JobRecord> {
  const { admission, config, cpu, registry } = owners
  const before = await submittedBefore(exchange, body, owners)
  if (before) return before
  if (exchange.inline.size > 0 || Buffer.byteLength(text) > config.limits.json_body)
    throw new Failure(
      'payload_too_large',
      `The inputs of a job of ${task} may have at most ${Math.floor(config.limits.json_body / 1024)} KiB. Send a larger request to the endpoint of the task.`,
    )
  const { modelId, estimate } = await cpu.prepare(task, Buffer.from(text), registry.catalog(), config.limits, {
    strict,
  })
  const admitted = admission.admit(exchange.caller, { kind: 'job', task, modelId, estimate: () => estimate! })
  return (await submitJob(exchange, body, { admitted, inputs: text, terms }, owners)).job
}

export interface SpeechJobOptions {
  /** The body of the endpoint, its model included. */
  inputs: unknown
  terms?: JobTerms
  /** The body that an idempotency key stands for. */
  body: unknown
}

/** The owners that the submission of speech needs. */
export type SpeechJobOwners = Owners<
  'admission' | 'config' | 'conversion' | 'files' | 'jobs' | 'log' | 'media' | 'registry'
>

/** Submits speech as a durable job. Validates its inputs first: throws Failure for invalid ones. */
export async function submitSpeech(
  exchange: ClientExchange,
  { inputs, terms, body }: SpeechJobOptions,
  owners: SpeechJobOwners,
): Promise<JobRecord> {
  const before = await submittedBefore(exchange, body, owners)
  if (before) return before
  const { admission, conversion, media, registry } = owners
  const { task, modelId, engineFormat, format, reference } = prepareSpeech(inputs, registry.catalog())
  const admitted = admission.admit(exchange.caller, {
    kind: 'job',
    task,
    modelId,
    estimate: () => estimateOf(task, inputs as Record<string, unknown>),
  })
  await conversion.check(engineFormat, format)
  const kept = speechInputs(inputs, registry.catalog().get(modelId)!)
  const files = reference && exchange.inline.has(reference.value) ? 1 : 0
  checkInputSize(exchange, task, JSON.stringify(kept), owners, files)
  const options = { admitted, inputs: kept, ...(terms ? { terms } : {}) }
  if (!reference) return (await submitJob(exchange, body, options, owners)).job
  admission.requireBudget(admitted)
  const id = newId('job')
  const sender = { ...exchange.sender, jobId: id }
  const recording = exchange.inline.get(reference.value) ?? reference.value
  const file = await media.take(sender, 'reference_audio', recording, 'audio')
  try {
    const inputs = { ...kept, reference_audio: file.id }
    const { job, replayed } = await submitJob(exchange, body, { ...options, id, inputs }, owners)
    if (replayed) await forget([file], owners)
    return job
  } catch (thrown) {
    await forget([file], owners)
    throw thrown
  }
}

export interface TranscriptionJobOptions {
  task: TranscriptionTask
  /** The body of the endpoint, its model included. */
  inputs: object
  /** The audio, if it was sent as a file of a form. */
  sent?: MediaInput | undefined
  terms?: JobTerms
  /** The body that an idempotency key stands for. */
  body: unknown
}

/** The owners that the submission of a transcription needs. */
export type TranscriptionJobOwners = Owners<'admission' | 'config' | 'files' | 'jobs' | 'log' | 'media' | 'registry'>

/**
 * Submits a transcription as a durable job, with its audio as a file of the organization. Throws Failure for an invalid
 * request; then nothing is kept.
 */
export async function submitTranscription(
  exchange: ClientExchange,
  { task, inputs, sent, terms, body }: TranscriptionJobOptions,
  owners: TranscriptionJobOwners,
): Promise<JobRecord> {
  const { admission, media, registry } = owners
  const request = inputs as TranscriptionRequest
  const prepared = prepareTranscription(task, jobRequest(request), registry.catalog())
  const { modelId } = prepared
  const admitted = admission.admit(exchange.caller, {
    kind: 'job',
    task,
    modelId,
    // Its length is not known before it is fetched: something must be left.
    estimate: () => estimateOf(task, {}, 1),
  })
  // Checked before the audio is fetched, because it may no longer exist at its source.
  const before = await submittedBefore(exchange, body, owners)
  if (before) return before
  admission.requireBudget(admitted)
  const kept = transcriptionInputs(task, request, registry.catalog().get(modelId)!)
  checkInputSize(exchange, task, JSON.stringify(kept), owners)
  const id = newId('job')
  const { field, value } = prepared.sound
  const sender = { ...exchange.sender, jobId: id }
  const file = await media.take(sender, field, sent ?? exchange.inline.get(value) ?? value, 'audio')
  const stored = [file]
  const estimated = admission.estimated(admitted, () => estimateOf(task, kept, file.bytes))
  try {
    for (const [at, one] of prepared.speakers.entries())
      stored.push(await media.take(sender, speakerField(at), exchange.inline.get(one) ?? one, 'audio'))
    exchange.releaseBody()
    const inputs = withFiles(
      kept,
      file.id,
      stored.slice(1).map(speaker => speaker.id),
    )
    const options = { id, admitted: estimated, inputs, ...(terms ? { terms } : {}) }
    const { job, replayed } = await submitJob(exchange, body, options, owners)
    if (replayed) await forget(stored, owners)
    return job
  } catch (thrown) {
    await forget(stored, owners)
    throw thrown
  }
}

interface Terms {
  terms: JobTerms
  /** The body that an idempotency key stands for. */
  body: unknown
}

interface Creation extends Terms {
  task: Task
  modelId: string
  /** The body of the task's endpoint without the model. Large inputs are JSON text without the files they contained. */
  inputs: object | string
}

/** The owners that the submission of a job of any task needs. */
export type SubmitterOwners = SubmitOwners & SpeechJobOwners & TextJobOwners & TranscriptionJobOwners

/** Submits jobs of the tasks that one runner runs. Both reject with Failure for invalid inputs. */
interface Submitter {
  create(exchange: ClientExchange, creation: Creation, owners: SubmitterOwners): Promise<JobRecord>
  /** Submits the work of a job that has ended as a new job. */
  repeat(exchange: ClientExchange, job: JobRecord, terms: Terms, owners: SubmitterOwners): Promise<JobRecord>
}

const text: Submitter = {
  create: (exchange, { task, modelId, inputs, ...terms }, owners) =>
    submitText(
      exchange,
      { task: task as TextTask, text: requestText(inputs, modelId), ...terms, strict: true },
      owners,
    ),
  repeat: (exchange, { task, inputs }, terms, owners) =>
    submitText(exchange, { task: task as TextTask, text: inputs, ...terms }, owners),
}

const speech: Submitter = {
  create: (exchange, { task, modelId, inputs, ...terms }, owners) =>
    submitSpeech(exchange, { inputs: checkedInputs(exchange, task, modelId, inputs, owners), ...terms }, owners),
  repeat: (exchange, { inputs }, terms, owners) =>
    submitSpeech(exchange, { inputs: JSON.parse(inputs) as object, ...terms }, owners),
}

const transcription: Submitter = {
  create: (exchange, { task, modelId, inputs, ...terms }, owners) =>
    submitTranscription(
      exchange,
      {
        task: task as TranscriptionTask,
        inputs: checkedInputs(exchange, task, modelId, inputs, owners),
        ...terms,
      },
      owners,
    ),
  repeat: (exchange, { task, inputs }, terms, owners) =>
    submitTranscription(
      exchange,
      { task: task as TranscriptionTask, inputs: JSON.parse(inputs) as object, ...terms },
      owners,
    ),
}

const generation: Submitter = {
  async create(exchange, { task, modelId, inputs, terms }, owners) {
    const target = { modelId, task: task as GenerationTask | ImageTask }
    const body = parsedInputs(exchange, task, inputs, owners)
    return (await submitGeneration(exchange, { target, body, terms, strict: true }, owners)).job
  },
  async repeat(exchange, { task, modelId, slug, inputs }, { terms }, owners) {
    const found = slug === null ? undefined : owners.registry.bySlug(slug)
    const isSame = found?.model.id === modelId && found.task === task
    const target = isSame ? { slug: slug! } : { modelId, task: task as GenerationTask | ImageTask }
    const request = taskRecord(task).requestAgain(JSON.parse(inputs) as never)
    return (await submitGeneration(exchange, { target, body: request, terms }, owners)).job
  },
}

/** How jobs are submitted over HTTP, by the runner of their task. */
export const submitters: Record<RunnerName, Submitter> = { text, speech, transcription, generation }

/** Returns inputs as a value. Throws Failure `payload_too_large` for text that is too long even without its files. */
export function parsedInputs(
  exchange: ClientExchange,
  of: string,
  inputs: object | string,
  owners: Owners<'config'>,
): object {
  if (typeof inputs !== 'string') return inputs
  checkInputSize(exchange, of, inputs, owners)
  return JSON.parse(inputs) as object
}

/** Returns inputs with their model. Throws Failure `unknown_parameter` for fields that the task does not know. */
function checkedInputs(
  exchange: ClientExchange,
  task: Task,
  modelId: string,
  inputs: object | string,
  owners: Owners<'config' | 'registry'>,
): object {
  const request = { ...parsedInputs(exchange, task, inputs, owners), model: modelId }
  const model = owners.registry.find(modelId)
  if (model) checkRequestFields(taskRecord(task), request, model.extra_params)
  return request
}

/** Returns the request as JSON text with this model and without `stream`. Inputs that are text have neither field. */
function requestText(inputs: object | string, model: string): string {
  if (typeof inputs === 'string')
    return `${inputs.slice(0, -1)}${inputs === '{}' ? '' : ','}"model":${JSON.stringify(model)}}`
  const { stream: _, ...request } = { ...inputs, model } as Record<string, unknown>
  return JSON.stringify(request)
}
