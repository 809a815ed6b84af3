import { Failure } from '../../core/failure.ts'
import type { TextTask } from '../../core/schemas/task.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { Call } from '../call.ts'
import { type JobTerms, submitJob, submittedBefore } from '../submit.ts'

export interface TextWish {
  task: TextTask
  /** The inputs as the endpoint of the task would take them, as JSON text. */
  text: string
  terms: JobTerms
  /** What an idempotency key stands for. */
  body: unknown
}

/** What is wrong with the inputs is said at the submit and not when their turn comes. */
export async function submitText(call: Call, { task, text, terms, body }: TextWish): Promise<JobRecord> {
  const { admission, config, cpu, registry } = call.owners
  const before = await submittedBefore(call, body)
  if (before) return before
  if (call.inline.size > 0 || Buffer.byteLength(text) > config.limits.json_body)
    throw new Failure(
      'payload_too_large',
      `The inputs of a job of ${task} may have ${Math.floor(config.limits.json_body / 1024)} KiB. Send a larger request to the endpoint of the task.`,
    )
  const { modelId } = await cpu.prepare(task, Buffer.from(text), registry.catalog(), config.limits)
  const admitted = admission.admit(call.caller, { kind: 'job', task, modelId })
  return (await submitJob(call, body, { admitted, inputs: text, terms })).job
}
