import type { GenerationTask, ImageTask, Task, TextTask, TranscriptionTask } from '../../core/schemas/task.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { taskRecord } from '../../core/tasks/registry.ts'
import type { RunnerName } from '../../core/tasks/task.ts'
import type { Call } from '../call.ts'
import { submitGeneration } from '../slug/submit.ts'
import { submitSpeech } from '../std/speech-job.ts'
import { submitText } from '../std/text-job.ts'
import { submitTranscription } from '../std/transcription-job.ts'
import { boundInputs, type JobTerms } from '../submit.ts'

interface Terms {
  terms: JobTerms
  /** What an idempotency key stands for. */
  body: unknown
}

interface Creation extends Terms {
  task: Task
  modelId: string
  /** What the endpoint of the task takes, without the model. Large inputs are JSON text, from which files were taken. */
  inputs: object | string
}

/** Submits jobs of the tasks that one runner runs. Both reject with Failure for everything that is wrong with the inputs. */
interface Submitter {
  create(call: Call, creation: Creation): Promise<JobRecord>
  /** Submits the work of a job that has ended as a new job. */
  repeat(call: Call, job: JobRecord, terms: Terms): Promise<JobRecord>
}

const text: Submitter = {
  create: (call, { task, modelId, inputs, ...terms }) =>
    submitText(call, { task: task as TextTask, text: requestText(inputs, modelId), ...terms }),
  repeat: (call, { task, inputs }, terms) => submitText(call, { task: task as TextTask, text: inputs, ...terms }),
}

const speech: Submitter = {
  create: (call, { task, modelId, inputs, ...terms }) =>
    submitSpeech(call, { inputs: { ...parsedInputs(call, task, inputs), model: modelId }, ...terms }),
  repeat: (call, { inputs }, terms) => submitSpeech(call, { inputs: JSON.parse(inputs) as object, ...terms }),
}

const transcription: Submitter = {
  create: (call, { task, modelId, inputs, ...terms }) =>
    submitTranscription(call, {
      task: task as TranscriptionTask,
      inputs: { ...parsedInputs(call, task, inputs), model: modelId },
      ...terms,
    }),
  repeat: (call, { task, inputs }, terms) =>
    submitTranscription(call, { task: task as TranscriptionTask, inputs: JSON.parse(inputs) as object, ...terms }),
}

const generation: Submitter = {
  async create(call, { task, modelId, inputs, terms }) {
    const target = { modelId, task: task as GenerationTask | ImageTask }
    return (await submitGeneration(call, { target, body: parsedInputs(call, task, inputs), terms })).job
  },
  async repeat(call, { task, modelId, slug, inputs }, { terms }) {
    const found = slug === null ? undefined : call.owners.registry.bySlug(slug)
    const isSame = found?.model.id === modelId && found.task === task
    const target = isSame ? { slug: slug! } : { modelId, task: task as GenerationTask | ImageTask }
    const request = taskRecord(task).requestAgain(JSON.parse(inputs) as never)
    return (await submitGeneration(call, { target, body: request, terms })).job
  },
}

/** How jobs are submitted over HTTP, by the runner of their task. */
export const submitters: Record<RunnerName, Submitter> = { text, speech, transcription, generation }

/** Returns inputs as a value. Throws Failure `payload_too_large` for text that is too long although its files were taken out. */
export function parsedInputs(call: Call, of: string, inputs: object | string): object {
  if (typeof inputs !== 'string') return inputs
  boundInputs(call, of, inputs)
  return JSON.parse(inputs) as object
}

/** A job is not streamed, and its model is the one that it was submitted for. What is text already has neither. */
function requestText(inputs: object | string, model: string): string {
  if (typeof inputs === 'string')
    return `${inputs.slice(0, -1)}${inputs === '{}' ? '' : ','}"model":${JSON.stringify(model)}}`
  const { stream: _, ...request } = { ...inputs, model } as Record<string, unknown>
  return JSON.stringify(request)
}
