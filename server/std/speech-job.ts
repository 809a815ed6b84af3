import type { JobRecord } from '../../core/store/store.ts'
import { estimateOf } from '../../core/tasks/registry.ts'
import { prepareSpeech, speech, speechInputs } from '../../core/tasks/speech/speech.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { boundInputs, type JobTerms, submitJob, submittedBefore } from '../submit.ts'

export interface SpeechJobOptions {
  /** The body of the endpoint, its model included. */
  inputs: unknown
  terms?: JobTerms
  /** The body that an idempotency key stands for. */
  body: unknown
}

/** The owners that the submission of speech needs. */
export type SpeechJobOwners = Pick<Owners, 'admission' | 'config' | 'conversion' | 'jobs' | 'registry'>

/** Submits speech as a durable job. Validates its inputs first: throws Failure for invalid ones. */
export async function submitSpeech(
  call: Call,
  { inputs, terms, body }: SpeechJobOptions,
  owners: SpeechJobOwners,
): Promise<JobRecord> {
  const before = await submittedBefore(call, body, owners)
  if (before) return before
  const { admission, conversion, registry } = owners
  const { modelId, engineFormat, format } = prepareSpeech(inputs, registry.catalog())
  const admitted = admission.admit(call.caller, {
    kind: 'job',
    task: speech.id,
    modelId,
    estimate: () => estimateOf(speech.id, inputs as Record<string, unknown>),
  })
  await conversion.check(engineFormat, format)
  const kept = speechInputs(inputs, registry.catalog().get(modelId)!)
  boundInputs(call, speech.id, JSON.stringify(kept), owners)
  return (await submitJob(call, body, { admitted, inputs: kept, ...(terms ? { terms } : {}) }, owners)).job
}
