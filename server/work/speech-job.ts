import { newId } from '../../core/ids.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { estimateOf } from '../../core/tasks/registry.ts'
import { prepareSpeech, speechInputs } from '../../core/tasks/speech/speech.ts'
import type { Call } from '../http/request/call.ts'
import type { Owners } from '../http/request/owners.ts'
import { checkInputSize, type JobTerms, submitJob, submittedBefore } from './submit.ts'
import { forget } from './submit-generation.ts'

export interface SpeechJobOptions {
  /** The body of the endpoint, its model included. */
  inputs: unknown
  terms?: JobTerms
  /** The body that an idempotency key stands for. */
  body: unknown
}

/** The owners that the submission of speech needs. */
export type SpeechJobOwners = Pick<
  Owners,
  'admission' | 'config' | 'conversion' | 'files' | 'jobs' | 'log' | 'media' | 'registry'
>

/** Submits speech as a durable job. Validates its inputs first: throws Failure for invalid ones. */
export async function submitSpeech(
  call: Call,
  { inputs, terms, body }: SpeechJobOptions,
  owners: SpeechJobOwners,
): Promise<JobRecord> {
  const before = await submittedBefore(call, body, owners)
  if (before) return before
  const { admission, conversion, media, registry } = owners
  const { task, modelId, engineFormat, format, reference } = prepareSpeech(inputs, registry.catalog())
  const admitted = admission.admit(call.caller, {
    kind: 'job',
    task,
    modelId,
    estimate: () => estimateOf(task, inputs as Record<string, unknown>),
  })
  await conversion.check(engineFormat, format)
  const kept = speechInputs(inputs, registry.catalog().get(modelId)!)
  const files = reference && call.inline.has(reference.value) ? 1 : 0
  checkInputSize(call, task, JSON.stringify(kept), owners, files)
  const options = { admitted, inputs: kept, ...(terms ? { terms } : {}) }
  if (!reference) return (await submitJob(call, body, options, owners)).job
  admission.requireBudget(admitted)
  const id = newId('job')
  const sender = { organizationId: call.caller.organizationId, origin: call.origin, jobId: id, signal: call.signal }
  const recording = call.inline.get(reference.value) ?? reference.value
  const file = await media.take(sender, 'reference_audio', recording, 'audio')
  try {
    const inputs = { ...kept, reference_audio: file.id }
    const { job, replayed } = await submitJob(call, body, { ...options, id, inputs }, owners)
    if (replayed) await forget([file], owners)
    return job
  } catch (thrown) {
    await forget([file], owners)
    throw thrown
  }
}
