import { modelAllowed } from '../../core/accounts/accounts.ts'
import { Failure } from '../../core/failure.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { prepareSpeech, speechInputs } from '../../core/tasks/audio/speech.ts'
import { speechTask } from '../../core/tasks/tasks.ts'
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
  const { conversion, registry } = call.owners
  const { modelId, asked, format } = prepareSpeech(inputs, registry.catalog())
  if (!modelAllowed(call.caller.token.models, modelId))
    throw new Failure(
      'model_not_allowed',
      `The token '${call.caller.token.name}' may not use the model '${modelId}'.`,
      { param: 'model' },
    )
  await conversion.check(asked, format)
  const kept = speechInputs(inputs, registry.catalog().get(modelId)!)
  boundInputs(call, speechTask, JSON.stringify(kept))
  return (await submitJob(call, body, { task: speechTask, modelId, inputs: kept, ...(terms ? { terms } : {}) })).job
}
