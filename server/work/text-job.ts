import { Failure } from '../../core/failure.ts'
import type { TextTask } from '../../core/schemas/task.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { Call } from '../http/request/call.ts'
import type { Owners } from '../http/request/owners.ts'
import { type JobTerms, submitJob, submittedBefore } from './submit.ts'

export interface TextJobOptions {
  task: TextTask
  /** The body of the task's endpoint, as JSON text. */
  text: string
  terms: JobTerms
  /** The body that an idempotency key stands for. */
  body: unknown
  /** Whether to refuse inputs that the task does not know. */
  strict?: boolean
}

/** The owners that the submission of a text task needs. */
export type TextJobOwners = Pick<Owners, 'admission' | 'config' | 'cpu' | 'jobs' | 'registry'>

/** Submits a text task as a durable job. Validates its inputs first: throws Failure for invalid ones. */
export async function submitText(
  call: Call,
  { task, text, terms, body, strict = false }: TextJobOptions,
  owners: TextJobOwners,
): Promise<JobRecord> {
  const { admission, config, cpu, registry } = owners
  const before = await submittedBefore(call, body, owners)
  if (before) return before
  if (call.inline.size > 0 || Buffer.byteLength(text) > config.limits.json_body)
    throw new Failure(
      'payload_too_large',
      `The inputs of a job of ${task} may have at most ${Math.floor(config.limits.json_body / 1024)} KiB. Send a larger request to the endpoint of the task.`,
    )
  const { modelId, estimate } = await cpu.prepare(task, Buffer.from(text), registry.catalog(), config.limits, {
    strict,
  })
  const admitted = admission.admit(call.caller, { kind: 'job', task, modelId, estimate: () => estimate! })
  return (await submitJob(call, body, { admitted, inputs: text, terms }, owners)).job
}
