import { newId } from '../../core/ids.ts'
import type { Sent } from '../../core/media/take.ts'
import type { TranscriptionTask } from '../../core/schemas/task.ts'
import type { FileRecord, JobRecord } from '../../core/store/store.ts'
import { jobRequest, prepareTranscription, transcriptionInputs } from '../../core/tasks/transcription/transcription.ts'
import type { TranscriptionRequest } from '../../core/tasks/transcription/transcription-request.ts'
import type { Call } from '../call.ts'
import { originOf } from '../origin.ts'
import { boundInputs, type JobTerms, submitJob, submittedBefore } from '../submit.ts'

export interface TranscriptionWish {
  task: TranscriptionTask
  /** The body of the endpoint, its model included. */
  inputs: object
  /** The sound itself, where it came as a file of a form. */
  sent?: Sent | undefined
  terms?: JobTerms
  /** What an idempotency key stands for. */
  body: unknown
}

/**
 * A durable job of speech to text: the sound becomes a file of the organization's own before it is accepted. Throws
 * Failure for all that is wrong with it; then nothing of it is kept.
 */
export async function submitTranscription(
  call: Call,
  { task, inputs, sent, terms, body }: TranscriptionWish,
): Promise<JobRecord> {
  const { admission, media, registry } = call.owners
  const request = inputs as TranscriptionRequest
  const prepared = prepareTranscription(task, jobRequest(request), registry.catalog())
  const { modelId } = prepared
  const admitted = admission.admit(call.caller, { kind: 'job', task, modelId })
  // What it names may have been taken over long ago, and be gone from where it was.
  const before = await submittedBefore(call, body)
  if (before) return before
  const kept = transcriptionInputs(task, request, registry.catalog().get(modelId)!)
  boundInputs(call, task, JSON.stringify(kept))
  const id = newId('job')
  const { field, value } = prepared.sound
  const sender = { organizationId: call.caller.organizationId, origin: originOf(call), jobId: id, signal: call.gone }
  const file = await media.take(sender, field, sent ?? call.inline.get(value) ?? value, 'audio')
  call.letBodyGo()
  const wish = { id, admitted, inputs: { ...kept, file_id: file.id } }
  try {
    const { job, replayed } = await submitJob(call, body, { ...wish, ...(terms ? { terms } : {}) })
    if (replayed) await forget(call, file)
    return job
  } catch (thrown) {
    await forget(call, file)
    throw thrown
  }
}

/** The file of a job that did not come about. What cannot be removed now goes when its time is over. */
async function forget(call: Call, { organizationId, id }: FileRecord): Promise<void> {
  const { files, log } = call.owners
  await files
    .remove(organizationId, id)
    .catch((cause: unknown) => log.warn('A file of a refused request could not be removed', { file: id }, cause))
}
