import { Failure } from '../../core/failure.ts'
import { queueIdOf } from '../../core/ids.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { ExecutionRecord } from '../../core/store/workflows.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import { idempotencyKeyOf } from '../http/request/idempotency.ts'
import type { Owners } from '../http/request/owners.ts'
import { hasEnded } from '../views/job-record.ts'

/**
 * Resolves with the job at its end, or in its current state after `waitMs`. A job that has not begun within `startMs`
 * is cancelled unless it has an idempotency key: throws Failure `model_warming_up` or `no_capacity`. Throws Failure
 * `cancelled` when the client disconnects, which does not stop the job, and `shutting_down` when the server stops.
 */
export async function waitForEnd(
  exchange: ClientExchange,
  job: JobRecord,
  {
    waitMs,
    startMs,
    instead = 'send the request without sync_mode',
  }: { waitMs: number; startMs: number; instead?: string },
  owners: Owners<'jobs'>,
): Promise<JobRecord> {
  const { jobs } = owners
  const { organizationId, id } = job
  const began = performance.now()
  let now: JobRecord | undefined
  const find = async () => {
    now = await jobs.find(organizationId, id)
    if (now) return now
    throw new Failure('output_expired', `Request ${queueIdOf(id)} was deleted before it ended.`)
  }
  for (const [at, until] of [Math.min(startMs, waitMs), waitMs].entries()) {
    const remainingMs = until - (performance.now() - began)
    const checked = new AbortController()
    const stopped = AbortSignal.any([
      exchange.signal,
      AbortSignal.timeout(Math.max(0, Math.ceil(remainingMs))),
      checked.signal,
    ])
    // Starts to wait before it reads the job, because an end between the two would not be reported again.
    const waiting = jobs.wait(id, stopped, organizationId)
    try {
      const before = await find()
      if (hasEnded(before)) return before
      const ended = await waiting
      if (ended) return ended
    } finally {
      checked.abort()
    }
    exchange.signal.throwIfAborted()
    const after = await find()
    if (hasEnded(after)) return after
    if (jobs.stats().draining)
      throw new Failure(
        'shutting_down',
        `The server is stopping. Request ${queueIdOf(id)} continues after the restart.`,
        {
          facts: { request_id: queueIdOf(id) },
        },
      )
    if (at === 0 && startMs < waitMs && after.status === 'pending' && after.startedAt === null)
      throw await notBegun(exchange, after, instead, owners)
  }
  return now!
}

/**
 * Returns the failure of a job that has not begun in time. Cancels and removes the job, unless it has an idempotency
 * key: then other callers may know it or wait for it under that key.
 */
async function notBegun(exchange: ClientExchange, job: JobRecord, instead: string, { jobs }: Owners<'jobs'>) {
  const { organizationId, id, modelId } = job
  const { waitingFor } = jobs.progressOf(job)
  const code = waitingFor?.reason === 'model_loading' ? 'model_warming_up' : 'no_capacity'
  // Before it is cancelled: nothing may wait for the model after that.
  const retry = jobs.calls.whenToRetry(modelId, code)
  const kept = idempotencyKeyOf(exchange) !== undefined
  const request_id = queueIdOf(id)
  if (!kept) {
    await jobs.cancel(organizationId, id)
    await jobs.remove(organizationId, id)
  }
  const next = kept
    ? `Request ${request_id} continues: send it again with its 'Idempotency-Key', or read it at its status_url.`
    : `Try again later, or ${instead}.`
  const ids: Failure['facts'] = kept ? { job_id: id, request_id, status_url: `${exchange.origin}/api/jobs/${id}` } : {}
  return code === 'model_warming_up'
    ? new Failure(code, `The model '${modelId}' is still loading. ${next}`, {
        ...retry,
        facts: { ...retry.facts, ...ids },
      })
    : new Failure(
        code,
        `The model '${modelId}' has no capacity for this request now${waitingFor ? `: ${waitingFor.detail}` : '.'} ${next}`,
        { retryAfterMs: waitingFor?.etaMs ?? undefined, facts: ids, final: !kept && waitingFor?.final === true },
      )
}

/** Returns why a job that has ended has no result. */
export function failureOf({ id, error }: JobRecord): Failure {
  return error
    ? new Failure(error.code, error.message)
    : new Failure('cancelled', `Request ${queueIdOf(id)} was cancelled.`)
}

export const isRunning = ({ finishedAt }: Pick<ExecutionRecord, 'finishedAt'>): boolean => finishedAt === null

/**
 * Resolves when the execution has ended or the time is over. Throws Failure `cancelled` if the client disconnected, and
 * the failure of its token if that may no longer read the execution.
 */
export async function waitForExecution(
  id: string,
  seconds: number,
  exchange: ClientExchange,
  { executions }: Owners<'executions'>,
): Promise<void> {
  const stopped = AbortSignal.any([exchange.signal, AbortSignal.timeout(Math.ceil(seconds * 1000))])
  const { promise, resolve } = Promise.withResolvers<void>()
  const summary = () => executions.summary(exchange.caller.organizationId, id)
  const settleAtEnd = (now: Awaited<ReturnType<typeof summary>>) => {
    if (!now || !isRunning(now)) resolve()
  }
  let looking = false
  /** What cannot be read now is looked at again. */
  const look = () => {
    if (looking) return
    looking = true
    summary()
      .then(settleAtEnd, () => {})
      .finally(() => (looking = false))
  }
  const stop = executions.follow(id, ended => {
    if (ended) resolve()
    else if (ended === undefined) look()
  })
  stopped.addEventListener('abort', () => resolve(), { once: true })
  const unwatch = exchange.access.watch(exchange, failure => exchange.stop(failure))
  summary().then(settleAtEnd, resolve)
  await promise
  unwatch()
  stop()
  exchange.signal.throwIfAborted()
}
