import type { Admitted } from '../core/admission/admission.ts'
import { Failure } from '../core/failure.ts'
import { newId, queueIdOf } from '../core/ids.ts'
import type { JobRecord } from '../core/store/store.ts'
import { taskNamed } from '../core/tasks/registry.ts'
import type { Call } from './call.ts'
import { idempotencyOf } from './idempotency.ts'
import { originOf } from './origin.ts'

export interface JobWish {
  /** Where it has an id already, because files were taken for it. */
  id?: string
  /** The work, as admission gave it. */
  admitted: Admitted
  /** The slug under which it was asked for. */
  slug?: string | null
  /** As the endpoint of the task would take them, checked; or that as JSON text. */
  inputs: object | string
  terms?: JobTerms
}

/** When and how it runs, whatever it does. */
export interface JobTerms {
  /** Higher is sooner. */
  priority?: number | undefined
  maxAttempts?: number | undefined
  /** Epoch milliseconds. */
  notBefore?: number | undefined
  /** It fails unless it has begun so many milliseconds after it may. */
  startTimeoutMs?: number | undefined
  /** How long one attempt may run. */
  timeoutMs?: number | undefined
  /** How long it is kept after its end, milliseconds; what the configuration says when absent. */
  retentionMs?: number | undefined
  metadata?: object | undefined
}

/**
 * Inputs of a job as JSON text, from which its files have been taken. Throws Failure `payload_too_large` where they are
 * more than a job may have, so that such are neither parsed on the loop nor kept.
 */
export function boundInputs(call: Call, of: string, text: string): void {
  const most = call.owners.config.limits.json_body
  const isFile = call.inline.size > 0 && taskNamed(of)?.takesFiles === false
  if (isFile || Buffer.byteLength(text) > most)
    throw new Failure(
      'payload_too_large',
      `The inputs of a job of ${of} may have ${Math.floor(most / 1024)} KiB, besides the files in them. Send less.`,
    )
}

/**
 * Stores a job of the caller and resolves with it once it survives a crash. `body` is what an `Idempotency-Key` stands
 * for: a job that the same key made is returned instead. Throws Failure `idempotency_key_reused`, `invalid_value` for a
 * key that is none, `disk_full`, `shutting_down`.
 */
export async function submitJob(
  call: Call,
  body: unknown,
  { id = newId('job'), admitted, slug = null, inputs, terms = {} }: JobWish,
): Promise<{ job: JobRecord; replayed: boolean }> {
  const now = Date.now()
  const notBefore = Math.max(now, terms.notBefore ?? 0)
  const retentionMs = terms.retentionMs ?? call.owners.config.limits.job_retention
  const submitted = await call.owners.jobs.submit({
    id,
    admitted,
    slug,
    inputs: typeof inputs === 'string' ? inputs : JSON.stringify(inputs),
    priority: terms.priority ?? 0,
    maxAttempts: terms.maxAttempts ?? 3,
    startBy: terms.startTimeoutMs === undefined ? null : notBefore + terms.startTimeoutMs,
    timeoutMs: terms.timeoutMs ?? null,
    retentionMs: retentionMs === 0 ? null : retentionMs,
    notBefore,
    createdAt: now,
    metadata: terms.metadata ? JSON.stringify(terms.metadata) : null,
    idempotency: idempotencyOf(call, body),
  })
  call.header('x-job-id', submitted.job.id)
  if (submitted.replayed) call.header('idempotent-replayed', 'true')
  return submitted
}

/**
 * The job that this request made before under its `Idempotency-Key`, for those who would have to do much to submit it
 * again. Throws Failure as `submitJob` does.
 */
export async function submittedBefore(call: Call, body: unknown): Promise<JobRecord | undefined> {
  const key = idempotencyOf(call, body)
  const job = key && (await call.owners.store.jobs.keyed(call.caller.organizationId, key, Date.now()))
  if (job) call.header('x-job-id', job.id).header('idempotent-replayed', 'true')
  return job ?? undefined
}

/** Answers `Prefer: respond-async` with the job that was made of the request. */
export function answerLater(call: Call, job: JobRecord): void {
  const answer = { ...submitted(job), status_url: `${originOf(call)}/api/jobs/${job.id}` }
  call.send(202, JSON.stringify(answer), 'application/json', ['preference-applied', 'respond-async'])
}

/** What a submit is answered with, wherever nothing else is said about it. */
export const submitted = ({ id, status }: JobRecord) => ({ id, queue_id: queueIdOf(id), status })
