import type { Admitted } from '../../core/admission/admission.ts'
import { Failure } from '../../core/failure.ts'
import { newId, queueIdOf } from '../../core/ids.ts'
import type { AdmittedJob } from '../../core/jobs/submissions.ts'
import { deferredUntil, type JobRecord, type RequestWebhook } from '../../core/store/store.ts'
import { taskNamed } from '../../core/tasks/registry.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import { idempotencyOf } from '../http/request/idempotency.ts'
import type { Owners } from '../http/request/owners.ts'

export interface JobOptions {
  /** Set if files were already stored for the job under this id. */
  id?: string
  /** The admitted work. */
  admitted: Admitted
  /** The slug that the request named. */
  slug?: string | null
  /** The validated body of the task's endpoint, or the same as JSON text. */
  inputs: object | string
  terms?: JobTerms | undefined
  /** Whether it waits until its prompt has been rewritten. */
  deferred?: boolean
  /** Whether its answer is known to need no engine. */
  withoutEngine?: boolean
}

/** When and how a job runs, whatever its task is. */
export interface JobTerms {
  /** Higher runs earlier. */
  priority?: number | undefined
  maxAttempts?: number | undefined
  /** Epoch milliseconds. */
  notBefore?: number | undefined
  /** The job fails unless it begins within this many milliseconds after `notBefore`. */
  startTimeoutMs?: number | undefined
  /** Milliseconds that one attempt may run. */
  timeoutMs?: number | undefined
  /** Milliseconds that the job is kept after its end; default: the configured time. */
  retentionMs?: number | undefined
  metadata?: object | undefined
  /** Where its events are sent besides the endpoints of the organization. */
  webhook?: RequestWebhook | undefined
}

/**
 * Checks the size of a job's inputs, given as JSON text without the files that they contained. `files` is how many of them
 * may be files. Throws Failure `payload_too_large`, so that larger inputs are neither parsed on the event loop nor stored.
 */
export function checkInputSize(
  exchange: ClientExchange,
  of: string,
  text: string,
  { config }: Owners<'config'>,
  files = taskNamed(of)?.takesFiles === false ? 0 : Number.POSITIVE_INFINITY,
): void {
  const maxBytes = config.limits.json_body
  if (exchange.inline.size > files || Buffer.byteLength(text) > maxBytes)
    throw new Failure(
      'payload_too_large',
      `The inputs of a job of ${of} may have at most ${Math.floor(maxBytes / 1024)} KiB, besides the files in them. Send less.`,
    )
}

/**
 * Stores a job of the caller and resolves with it once it survives a crash. A job that the same `Idempotency-Key` and
 * `body` created before is returned instead. Throws Failure `idempotency_key_reused`, `invalid_value` for a malformed
 * key, `disk_full`, `shutting_down`.
 */
export async function submitJob(
  exchange: ClientExchange,
  body: unknown,
  options: JobOptions,
  { config, jobs }: Owners<'config' | 'jobs'>,
): Promise<{ job: JobRecord; replayed: boolean }> {
  const submitted = await jobs.submit({
    ...newJobOf(exchange, options, config),
    idempotency: idempotencyOf(exchange, body),
  })
  exchange.header('x-job-id', submitted.job.id)
  if (submitted.replayed) exchange.header('idempotent-replayed', 'true')
  return submitted
}

/**
 * Stores several jobs of one request in one commit, and resolves once all of them survive a crash. One
 * `Idempotency-Key` stands for all. Throws as `submitJob` does; then none is stored.
 */
export async function submitJobs(
  exchange: ClientExchange,
  body: unknown,
  options: readonly JobOptions[],
  { config, jobs }: Owners<'config' | 'jobs'>,
): Promise<{ job: JobRecord; replayed: boolean }[]> {
  const key = idempotencyOf(exchange, body)
  const submitted = await jobs.submitAll(
    options.map((one, at) => ({ ...newJobOf(exchange, one, config), idempotency: key && memberKey(key, at) })),
  )
  if (submitted.every(({ replayed }) => replayed)) exchange.header('idempotent-replayed', 'true')
  return submitted
}

/**
 * Returns the jobs that this request for `count` jobs created before under its `Idempotency-Key`; undefined unless all
 * of them are known. Throws Failure as `submitJob` does.
 */
export async function allSubmittedBefore(
  exchange: ClientExchange,
  body: unknown,
  count: number,
  { jobs }: Owners<'jobs'>,
): Promise<JobRecord[] | undefined> {
  const key = idempotencyOf(exchange, body)
  if (!key) return undefined
  const before: JobRecord[] = []
  for (let at = 0; at < count; at++) {
    const job = await jobs.findByKey(exchange.caller.organizationId, memberKey(key, at), key.at)
    if (!job) return undefined
    before.push(job)
  }
  exchange.header('idempotent-replayed', 'true')
  return before
}

/** The first job has the key itself, so that a request with another body is refused. A caller's key has no space. */
const memberKey = <K extends { key: string }>(key: K, at: number) =>
  at === 0 ? key : { ...key, key: `${key.key} ${at}` }

function newJobOf(
  { traceparent }: ClientExchange,
  { id = newId('job'), admitted, slug = null, inputs, terms = {}, deferred = false, withoutEngine }: JobOptions,
  { limits }: Owners['config'],
): Omit<AdmittedJob, 'idempotency'> {
  const now = Date.now()
  const notBefore = Math.max(now, terms.notBefore ?? 0)
  const retentionMs = terms.retentionMs ?? limits.job_retention
  return {
    id,
    admitted,
    withoutEngine,
    slug,
    inputs: typeof inputs === 'string' ? inputs : JSON.stringify(inputs),
    priority: terms.priority ?? 0,
    maxAttempts: terms.maxAttempts ?? 3,
    startBy: terms.startTimeoutMs === undefined ? null : notBefore + terms.startTimeoutMs,
    timeoutMs: terms.timeoutMs ?? null,
    retentionMs: retentionMs === 0 ? null : retentionMs,
    notBefore: deferred ? deferredUntil : notBefore,
    createdAt: now,
    metadata: terms.metadata ? JSON.stringify(terms.metadata) : null,
    webhook: terms.webhook ?? null,
    traceparent: traceparent ?? null,
  }
}

/**
 * Returns the job that this request created before under its `Idempotency-Key`, for submissions that are expensive to
 * prepare again. Throws Failure as `submitJob` does.
 */
export async function submittedBefore(exchange: ClientExchange, body: unknown, { jobs }: Owners<'jobs'>) {
  const key = idempotencyOf(exchange, body)
  const job = key && (await jobs.findByKey(exchange.caller.organizationId, key, key.at))
  if (job) exchange.header('x-job-id', job.id).header('idempotent-replayed', 'true')
  return job ?? undefined
}

/** Answers `Prefer: respond-async` with the job that was created. */
export function answerLater(exchange: ClientExchange, job: JobRecord): void {
  const answer = { ...submissionAnswer(job), status_url: `${exchange.origin}/api/jobs/${job.id}` }
  exchange.send(202, JSON.stringify(answer), 'application/json', ['preference-applied', 'respond-async'])
}

/** The common answer to a submission. */
export const submissionAnswer = ({ id, status }: JobRecord) => ({ id, queue_id: queueIdOf(id), status })
