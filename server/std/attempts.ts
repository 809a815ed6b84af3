import { Failure } from '../../core/failure.ts'
import type { Lease } from '../../core/fleet.ts'
import { newId } from '../../core/ids.ts'
import { costOf } from '../../core/models/cost.ts'
import type { Model } from '../../core/models/model.ts'
import type { Task } from '../../core/schemas/task.ts'
import type { Usage } from '../../core/store/store.ts'
import type { Call, CallJob } from '../call.ts'
import { errorBody } from '../errors.ts'
import { type Hold, keepUnrepeatable, type Unrepeatable } from '../idempotency.ts'
import type { StreamEnd } from './relay.ts'

const mostAttempts = 3
const nothing: Usage = { inputTokens: 0, outputTokens: 0 }

export interface Work {
  task: Task
  model: Model
  createdAt: number
  /** The caller's bound; the model has its own. */
  waitMs: number
  /** Whether the answer is a stream, which is not given twice. */
  stream: boolean
  hold?: Hold
}

/** A call that cannot be billed is not begun. Throws Failure `no_capacity`. */
export function requireRecords(call: Call): void {
  if (call.owners.recorder.full)
    throw new Failure('no_capacity', 'The server cannot write its usage records fast enough. Try again in a moment.', {
      retryAfterMs: 2_000,
    })
}

/**
 * The part of a synchronous call in which something is done for the caller: a slot of an engine, the attempt, another
 * one where an engine broke before the caller has seen a byte, and one finished record. Rejects with what went wrong.
 */
export async function carryOut(
  call: Call,
  { task, model, createdAt, waitMs: patienceMs, stream, hold }: Work,
  attempt: (lease: Lease) => Promise<StreamEnd>,
): Promise<void> {
  const { owners } = call
  const job: CallJob = { id: newId('job'), task, modelId: model.id, createdAt, startedAt: null, engineId: null }
  call.job = job
  const waitMs = Math.min(model.dispatch_wait_ms, patienceMs)
  let end: StreamEnd | undefined
  let attempts = 1
  try {
    for (; ; attempts++) {
      const lease = await owners.fleet.lease(model, { waitMs, signal: call.leaving })
      // No `using`: V8 takes more than a microsecond for each, and this is the way of every request.
      try {
        job.startedAt ??= Date.now()
        owners.timings.took('queue', model.id, lease.waitedMs)
        job.engineId = lease.engineId
        if (attempts === 1)
          call.header('x-job-id', job.id).header('x-model-status', lease.loadedMs > 0 ? 'cold' : 'warm')
        end = await attempt(lease)
      } finally {
        lease.release()
      }
      if (end.how !== 'retry') break
      if (attempts >= mostAttempts || call.leaving.aborted) {
        end = { how: 'failed', failure: end.failure, usage: nothing }
        break
      }
      owners.log.warn('An engine broke before it answered; the request is tried again', {
        request: call.id,
        model: model.id,
        engine: job.engineId,
        attempt: attempts,
        reason: end.failure.message,
      })
    }
    if (end.how === 'failed') throw end.failure
    if (hold && stream && end.how === 'completed') await keepUnrepeatable(hold, streamed(job.id), job.id)
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (hold && keptFailure(failure))
      await hold.keep({ status: failure.status, body: JSON.stringify(errorBody(failure, call.id)), jobId: job.id })
    if (end?.how !== 'failed')
      end =
        failure.code === 'cancelled' ? { how: 'cancelled', usage: nothing } : { how: 'failed', failure, usage: nothing }
    throw failure
  } finally {
    // Who was refused at the door had nothing done for him; a record of each would make a flood of them costly.
    if (job.startedAt !== null || end!.how === 'cancelled') record(call, job, model, end!, attempts)
  }
}

function record(call: Call, job: CallJob, model: Model, end: StreamEnd, attempt: number): void {
  const usage = end.how === 'retry' ? nothing : end.usage
  const failure = end.how === 'failed' ? end.failure : undefined
  call.owners.recorder.record({
    id: job.id,
    task: job.task,
    modelId: job.modelId,
    createdAt: job.createdAt,
    startedAt: job.startedAt,
    engineId: job.engineId,
    organizationId: call.caller.organizationId,
    tokenId: call.caller.tokenId,
    status: end.how === 'retry' ? 'failed' : end.how,
    error: failure
      ? { code: failure.code, message: failure.message, type: failure.type, retryable: failure.retryable, attempt }
      : null,
    usage,
    cost: costOf(model.price, usage),
    finishedAt: Date.now(),
  })
}

/** A refusal that would be the same another time; what is the server's fault, or the moment's, is tried anew. */
const keptFailure = ({ status, code }: Failure): boolean => status < 500 && status !== 429 && code !== 'cancelled'

const streamed = (jobId: string): Unrepeatable => ({
  message: `The answer to this 'Idempotency-Key' was streamed, and a stream is not given twice. It was the job ${jobId}.`,
  facts: { job_id: jobId },
})
