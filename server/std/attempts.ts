import type { Admitted } from '../../core/admission/admission.ts'
import { Failure } from '../../core/failure.ts'
import type { Lease } from '../../core/fleet.ts'
import type { CallAttempt, RunningCall } from '../../core/jobs/call.ts'
import type { Call } from '../call.ts'
import { errorBody } from '../errors.ts'
import { type Hold, keepUnrepeatable, type Unrepeatable } from '../idempotency.ts'

export interface Work {
  admitted: Admitted
  createdAt: number
  /** The caller's bound; the model has its own. */
  waitMs: number
  /** Whether the answer is a stream, which is not given twice. */
  stream: boolean
  hold?: Hold
}

/**
 * Runs the compute of a synchronous request as a call, tells in the headers how it was served, and stores what a client
 * gets that sends the same idempotency key again. Rejects with the Failure that the request ends with.
 */
export async function carryOut(
  call: Call,
  { admitted, createdAt, waitMs, stream, hold }: Work,
  attempt: CallAttempt,
): Promise<void> {
  const { jobs, timings } = call.owners
  let jobId: string | null = null
  const began = (running: RunningCall, lease: Lease) => {
    jobId = running.id
    timings.took('queue', admitted.model.id, running.queuedMs)
    call
      .header('x-job-id', running.id)
      .header('x-model-status', lease.loadedMs > 0 ? 'cold' : 'warm')
      .header('x-queue-ms', String(Math.round(running.queuedMs)))
  }
  try {
    const caller = call.leaving
    const ended = await jobs.calls.run({ admitted, createdAt, waitMs, caller, began }, attempt)
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
