import { Failure } from '../../core/failure.ts'
import type { Lease } from '../../core/fleet.ts'
import type { CallAttempt, RunningCall } from '../../core/jobs/calls.ts'
import type { Model } from '../../core/models/model.ts'
import type { Task } from '../../core/tasks/tasks.ts'
import type { Call } from '../call.ts'
import { errorBody } from '../errors.ts'
import { type Hold, keepUnrepeatable, type Unrepeatable } from '../idempotency.ts'

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
 * Runs the compute of a synchronous request as a call, tells in the headers how it was served, and stores what a client
 * gets that sends the same idempotency key again. Rejects with the Failure that the request ends with.
 */
export async function carryOut(
  call: Call,
  { task, model, createdAt, waitMs, stream, hold }: Work,
  attempt: CallAttempt,
): Promise<void> {
  const { jobs, timings } = call.owners
  let jobId: string | null = null
  const began = (running: RunningCall, lease: Lease) => {
    jobId = running.id
    timings.took('queue', model.id, running.queuedMs)
    call
      .header('x-job-id', running.id)
      .header('x-model-status', lease.loadedMs > 0 ? 'cold' : 'warm')
      .header('x-queue-ms', String(Math.round(running.queuedMs)))
  }
  try {
    const { organizationId, tokenId } = call.caller
    const caller = call.leaving
    const ended = await jobs.calls.run(
      { organizationId, tokenId, task, model, createdAt, waitMs, caller, began },
      attempt,
    )
    if (hold && stream && ended.end.how === 'completed')
      await keepUnrepeatable(hold, streamed(ended.call.id), ended.call.id)
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (hold && keptFailure(failure))
      await hold.keep({ status: failure.status, body: JSON.stringify(errorBody(failure, call.id)), jobId })
    throw failure
  }
}

/** A refusal that would be the same another time; what is the server's fault, or the moment's, is tried anew. */
const keptFailure = ({ status, code }: Failure): boolean => status < 500 && status !== 429 && code !== 'cancelled'

const streamed = (jobId: string): Unrepeatable => ({
  message: `The answer to this 'Idempotency-Key' was streamed, and a stream is not given twice. It was the job ${jobId}.`,
  facts: { job_id: jobId },
})
