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
import { type SubmitOwners, submitGeneration, submitWithFiles } from './submit-generation.ts'

/** What every submission has besides its inputs. */
interface Submission {
  terms?: JobTerms | undefined
  /** The body that an idempotency key stands for. */
  body: unknown
}

export interface TextJobOptions extends Submission {
  task: TextTask
  /** The body of the task's endpoint, as JSON text. */
  text: string
  /** Whether to refuse inputs that the task does not know. */
  strict?: boolean
}

export type TextJobOwners = Owners<'admission' | 'config' | 'cpu' | 'jobs' | 'registry'>

/** Submits a text task as a durable job. Validates its inputs first: throws Failure for invalid ones. */
export async function submitText(exchange: ClientExchange, options: TextJobOptions, owners: TextJobOwners) {
  const { task, text, terms, body, strict = false } = options
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

export interface SpeechJobOptions extends Submission {
  /** The body of the endpoint, its model included. */
  inputs: unknown
}

export type SpeechJobOwners = Owners<
  'admission' | 'config' | 'conversion' | 'files' | 'jobs' | 'log' | 'media' | 'registry'
>

/** Submits speech as a durable job. Validates its inputs first: throws Failure for invalid ones. */
export async function submitSpeech(exchange: ClientExchange, options: SpeechJobOptions, owners: SpeechJobOwners) {
  const { inputs, terms, body } = options
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
  if (!reference) return (await submitJob(exchange, body, { admitted, inputs: kept, terms }, owners)).job
  admission.requireBudget(admitted)
  const id = newId('job')
  const sender = { ...exchange.sender, jobId: id }
  const recording = exchange.inline.get(reference.value) ?? reference.value
  const file = await media.take(sender, 'reference_audio', recording, 'audio')
  const job = { id, admitted, inputs: { ...kept, reference_audio: file.id }, terms }
  return (await submitWithFiles(exchange, body, [file], () => job, owners)).job
}

export interface TranscriptionJobOptions extends Submission {
  task: TranscriptionTask
  /** The body of the endpoint, its model included. */
  inputs: object
  /** The audio, if it was sent as a file of a form. */
  sent?: MediaInput | undefined
}

export type TranscriptionJobOwners = Owners<'admission' | 'config' | 'files' | 'jobs' | 'log' | 'media' | 'registry'>

/**
 * Submits a transcription as a durable job, with its audio as a file of the organization. Throws Failure for an invalid
 * request; then nothing is kept.
 */
export async function submitTranscription(
  exchange: ClientExchange,
  options: TranscriptionJobOptions,
  owners: TranscriptionJobOwners,
) {
  const { task, inputs, sent, terms, body } = options
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
  const take = (name: string, input: string) => media.take(sender, name, exchange.inline.get(input) ?? input, 'audio')
  const file = sent ? await media.take(sender, field, sent, 'audio') : await take(field, value)
  const stored = [file]
  const estimated = admission.estimated(admitted, () => estimateOf(task, kept, file.bytes))
  const jobOptions = async () => {
    for (const [at, one] of prepared.speakers.entries()) stored.push(await take(speakerField(at), one))
    exchange.releaseBody()
    const [, ...speakers] = stored.map(one => one.id)
    // What cannot be decoded fails with its reason when the job runs.
    const withoutEngine = await media.isSilent(sender, field, file.id).catch(() => false)
    return { id, withoutEngine, admitted: estimated, inputs: withFiles(kept, file.id, speakers), terms }
  }
  return (await submitWithFiles(exchange, body, stored, jobOptions, owners)).job
}

interface Creation extends Submission {
  task: Task
  modelId: string
  /** The body of the task's endpoint without the model. Large inputs are JSON text without the files they contained. */
  inputs: object | string
}

export type SubmitterOwners = SubmitOwners & SpeechJobOwners & TextJobOwners & TranscriptionJobOwners

/** Submits jobs of the tasks that one runner runs. Both reject with Failure for invalid inputs. */
interface Submitter {
  create(exchange: ClientExchange, creation: Creation, owners: SubmitterOwners): Promise<JobRecord>
  /** Submits the work of a job that has ended as a new job. */
  repeat(exchange: ClientExchange, job: JobRecord, submission: Submission, owners: SubmitterOwners): Promise<JobRecord>
}

const text: Submitter = {
  create: (exchange, { task, modelId, inputs, ...submission }, owners) => {
    const text = requestText(inputs, modelId)
    return submitText(exchange, { ...submission, task: task as TextTask, text, strict: true }, owners)
  },
  repeat: (exchange, { task, inputs }, submission, owners) =>
    submitText(exchange, { ...submission, task: task as TextTask, text: inputs }, owners),
}

const speech: Submitter = {
  create: (exchange, { task, modelId, inputs, ...submission }, owners) =>
    submitSpeech(exchange, { ...submission, inputs: checkedInputs(exchange, task, modelId, inputs, owners) }, owners),
  repeat: (exchange, { inputs }, submission, owners) =>
    submitSpeech(exchange, { ...submission, inputs: JSON.parse(inputs) }, owners),
}

const transcription: Submitter = {
  create: (exchange, { task, modelId, inputs: given, ...submission }, owners) => {
    const inputs = checkedInputs(exchange, task, modelId, given, owners)
    return submitTranscription(exchange, { ...submission, task: task as TranscriptionTask, inputs }, owners)
  },
  repeat: (exchange, { task, inputs: text }, submission, owners) => {
    const inputs = JSON.parse(text) as object
    return submitTranscription(exchange, { ...submission, task: task as TranscriptionTask, inputs }, owners)
  },
}

const generation: Submitter = {
  async create(exchange, { task, modelId, inputs, terms }, owners) {
    const target = { modelId, task: task as GenerationTask | ImageTask }
    const body = parsedInputs(exchange, task, inputs, owners)
    return (await submitGeneration(exchange, { target, body, terms, strict: true }, owners)).job
  },
  async repeat(exchange, { task, modelId: id, requestedModel, slug, inputs }, { terms }, owners) {
    const modelId = requestedModel ?? id
    const found = slug === null ? undefined : owners.registry.bySlug(slug)
    const isSame = found?.name === modelId && found.task === task
    const target = isSame ? { slug: slug! } : { modelId, task: task as GenerationTask | ImageTask }
    const request = taskRecord(task).requestAgain(JSON.parse(inputs) as never)
    return (await submitGeneration(exchange, { target, body: request, terms }, owners)).job
  },
}

const onlyInWorkflows = (_exchange: ClientExchange, { task }: { task: Task }): Promise<never> =>
  Promise.reject(
    new Failure(
      'unsupported_task',
      `The task '${task}' runs only as a node of a workflow. Put it into one and execute that: POST /api/workflows/run.`,
      { param: 'task' },
    ),
  )
const inWorkflows: Submitter = { create: onlyInWorkflows, repeat: onlyInWorkflows }

/** How jobs are submitted over HTTP, by the runner of their task. */
export const submitters: Record<RunnerName, Submitter> = {
  text,
  speech,
  transcription,
  generation,
  step: inWorkflows,
  wait: inWorkflows,
}

/** Returns inputs as a value. Throws Failure `payload_too_large` for text that is too long even without its files. */
export function parsedInputs(exchange: ClientExchange, of: string, inputs: object | string, owners: Owners<'config'>) {
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
function requestText(inputs: object | string, model: string) {
  if (typeof inputs === 'string')
    return `${inputs.slice(0, -1)}${inputs === '{}' ? '' : ','}"model":${JSON.stringify(model)}}`
  const { stream: _, ...request } = { ...inputs, model } as Record<string, unknown>
  return JSON.stringify(request)
}
