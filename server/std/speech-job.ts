import type { JobRecord } from '../../core/store/store.ts'
import { prepareSpeech, speech, speechInputs } from '../../core/tasks/speech/speech.ts'
import type { Call } from '../call.ts'
import { boundInputs, type JobTerms, submitJob, submittedBefore } from '../submit.ts'

export interface SpeechWish {
  /** The body of the endpoint, its model included. */
  inputs: unknown
  terms?: JobTerms
  /** What an idempotency key stands for. */
  body: unknown
}

/** A durable job of speech. What is wrong with its inputs is said now and not when their turn comes. */
export async function submitSpeech(call: Call, { inputs, terms, body }: SpeechWish): Promise<JobRecord> {
  const before = await submittedBefore(call, body)
  if (before) return before
  const { admission, conversion, registry } = call.owners
  const { modelId, asked, format } = prepareSpeech(inputs, registry.catalog())
  const admitted = admission.admit(call.caller, { kind: 'job', task: speech.id, modelId })
  await conversion.check(asked, format)
  const kept = speechInputs(inputs, registry.catalog().get(modelId)!)
  boundInputs(call, speech.id, JSON.stringify(kept))
  return (await submitJob(call, body, { admitted, inputs: kept, ...(terms ? { terms } : {}) })).job
}
