import { newId } from '../../core/ids.ts'
import type { MediaInput } from '../../core/media/media.ts'
import type { TranscriptionTask } from '../../core/schemas/task.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { estimateOf } from '../../core/tasks/registry.ts'
import {
  jobRequest,
  prepareTranscription,
  speakerField,
  transcriptionInputs,
  withFiles,
} from '../../core/tasks/transcription/transcription.ts'
import type { TranscriptionRequest } from '../../core/tasks/transcription/transcription-request.ts'
import type { Call } from '../http/request/call.ts'
import type { Owners } from '../http/request/owners.ts'
import { checkInputSize, type JobTerms, submitJob, submittedBefore } from './submit.ts'
import { forget } from './submit-generation.ts'

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
export type TranscriptionJobOwners = Pick<
  Owners,
  'admission' | 'config' | 'files' | 'jobs' | 'log' | 'media' | 'registry'
>

/**
 * Submits a transcription as a durable job, with its audio as a file of the organization. Throws Failure for an invalid
 * request; then nothing is kept.
 */
export async function submitTranscription(
  call: Call,
  { task, inputs, sent, terms, body }: TranscriptionJobOptions,
  owners: TranscriptionJobOwners,
): Promise<JobRecord> {
  const { admission, media, registry } = owners
  const request = inputs as TranscriptionRequest
  const prepared = prepareTranscription(task, jobRequest(request), registry.catalog())
  const { modelId } = prepared
  const admitted = admission.admit(call.caller, {
    kind: 'job',
    task,
    modelId,
    // Its length is not known before it is fetched: something must be left.
    estimate: () => estimateOf(task, {}, 1),
  })
  // Checked before the audio is fetched, because it may no longer exist at its source.
  const before = await submittedBefore(call, body, owners)
  if (before) return before
  admission.requireBudget(admitted)
  const kept = transcriptionInputs(task, request, registry.catalog().get(modelId)!)
  checkInputSize(call, task, JSON.stringify(kept), owners)
  const id = newId('job')
  const { field, value } = prepared.sound
  const sender = { organizationId: call.caller.organizationId, origin: call.origin, jobId: id, signal: call.signal }
  const file = await media.take(sender, field, sent ?? call.inline.get(value) ?? value, 'audio')
  const stored = [file]
  const estimated = admission.estimated(admitted, () => estimateOf(task, kept, file.bytes))
  try {
    for (const [at, one] of prepared.speakers.entries())
      stored.push(await media.take(sender, speakerField(at), call.inline.get(one) ?? one, 'audio'))
    call.releaseBody()
    const inputs = withFiles(
      kept,
      file.id,
      stored.slice(1).map(speaker => speaker.id),
    )
    const options = { id, admitted: estimated, inputs, ...(terms ? { terms } : {}) }
    const { job, replayed } = await submitJob(call, body, options, owners)
    if (replayed) await forget(stored, owners)
    return job
  } catch (thrown) {
    await forget(stored, owners)
    throw thrown
  }
}
