import type { GenerationTask, ImageTask, Task, TextTask, TranscriptionTask } from '../../core/schemas/task.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { taskRecord } from '../../core/tasks/registry.ts'
import { checkRequestFields } from '../../core/tasks/request-fields.ts'
import type { RunnerName } from '../../core/tasks/task.ts'
import type { Call } from '../http/request/call.ts'
import type { Owners } from '../http/request/owners.ts'
import { type SpeechJobOwners, submitSpeech } from './speech-job.ts'
import { checkInputSize, type JobTerms } from './submit.ts'
import { type SubmitOwners, submitGeneration } from './submit-generation.ts'
import { submitText, type TextJobOwners } from './text-job.ts'
import { submitTranscription, type TranscriptionJobOwners } from './transcription-job.ts'

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
  create(call: Call, creation: Creation, owners: SubmitterOwners): Promise<JobRecord>
  /** Submits the work of a job that has ended as a new job. */
  repeat(call: Call, job: JobRecord, terms: Terms, owners: SubmitterOwners): Promise<JobRecord>
}

const text: Submitter = {
  create: (call, { task, modelId, inputs, ...terms }, owners) =>
    submitText(call, { task: task as TextTask, text: requestText(inputs, modelId), ...terms, strict: true }, owners),
  repeat: (call, { task, inputs }, terms, owners) =>
    submitText(call, { task: task as TextTask, text: inputs, ...terms }, owners),
}

const speech: Submitter = {
  create: (call, { task, modelId, inputs, ...terms }, owners) =>
    submitSpeech(call, { inputs: checkedInputs(call, task, modelId, inputs, owners), ...terms }, owners),
  repeat: (call, { inputs }, terms, owners) =>
    submitSpeech(call, { inputs: JSON.parse(inputs) as object, ...terms }, owners),
}

const transcription: Submitter = {
  create: (call, { task, modelId, inputs, ...terms }, owners) =>
    submitTranscription(
      call,
      {
        task: task as TranscriptionTask,
        inputs: checkedInputs(call, task, modelId, inputs, owners),
        ...terms,
      },
      owners,
    ),
  repeat: (call, { task, inputs }, terms, owners) =>
    submitTranscription(
      call,
      { task: task as TranscriptionTask, inputs: JSON.parse(inputs) as object, ...terms },
      owners,
    ),
}

const generation: Submitter = {
  async create(call, { task, modelId, inputs, terms }, owners) {
    const target = { modelId, task: task as GenerationTask | ImageTask }
    const body = parsedInputs(call, task, inputs, owners)
    return (await submitGeneration(call, { target, body, terms, strict: true }, owners)).job
  },
  async repeat(call, { task, modelId, slug, inputs }, { terms }, owners) {
    const found = slug === null ? undefined : owners.registry.bySlug(slug)
    const isSame = found?.model.id === modelId && found.task === task
    const target = isSame ? { slug: slug! } : { modelId, task: task as GenerationTask | ImageTask }
    const request = taskRecord(task).requestAgain(JSON.parse(inputs) as never)
    return (await submitGeneration(call, { target, body: request, terms }, owners)).job
  },
}

/** How jobs are submitted over HTTP, by the runner of their task. */
export const submitters: Record<RunnerName, Submitter> = { text, speech, transcription, generation }

/** Returns inputs as a value. Throws Failure `payload_too_large` for text that is too long even without its files. */
export function parsedInputs(call: Call, of: string, inputs: object | string, owners: Pick<Owners, 'config'>): object {
  if (typeof inputs !== 'string') return inputs
  checkInputSize(call, of, inputs, owners)
  return JSON.parse(inputs) as object
}

/** Returns inputs with their model. Throws Failure `unknown_parameter` for fields that the task does not know. */
function checkedInputs(
  call: Call,
  task: Task,
  modelId: string,
  inputs: object | string,
  owners: Pick<Owners, 'config' | 'registry'>,
): object {
  const request = { ...parsedInputs(call, task, inputs, owners), model: modelId }
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
