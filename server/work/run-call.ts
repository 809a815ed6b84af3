import type { Admitted } from '../../core/admission/admission.ts'
import { Failure } from '../../core/failure.ts'
import type { CallAttempt, RunningCall } from '../../core/jobs/call.ts'
import type { Lease } from '../../core/models/fleet.ts'
import type { Call } from '../http/request/call.ts'
import { errorAnswer } from '../http/request/errors.ts'
import { keepUnrepeatable, type Unrepeatable } from '../http/request/idempotency.ts'
import type { Hold } from '../http/request/idempotency-records.ts'
import type { Owners } from '../http/request/owners.ts'

export interface CallWork {
  admitted: Admitted
  createdAt: number
  /** The limit of the caller; the model has its own. */
  waitMs: number
  /** Whether the answer is a stream, which cannot be repeated. */
  stream: boolean
  hold?: Hold
}

/**
 * Runs a synchronous request as a call, sets the headers that describe how it was served, and stores the answer to a
 * repeated idempotency key. Rejects with the Failure of the request.
 */
export async function runCall(
  call: Call,
  { admitted, createdAt, waitMs, stream, hold }: CallWork,
  attempt: CallAttempt,
  { jobs, timings }: Pick<Owners, 'jobs' | 'timings'>,
): Promise<void> {
  let jobId: string | null = null
  const began = (running: RunningCall, lease: Lease) => {
    jobId = running.id
    timings.record('queue', admitted.model.id, running.queuedMs)
    call
      .header('x-job-id', running.id)
      .header('x-model-status', lease.loadedMs > 0 ? 'cold' : 'warm')
      .header('x-queue-ms', String(Math.round(running.queuedMs)))
  }
  try {
    const caller = call.abortSource
    const ended = await jobs.calls.run({ admitted, createdAt, waitMs, caller, began }, attempt)
    if (hold && stream && ended.end.how === 'completed')
      await keepUnrepeatable(hold, streamed(ended.call.id), ended.call.id)
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (hold && isStoredFailure(failure))
      await hold.keep({ ...errorAnswer(failure, call.id, call.route.errors), jobId })
    throw failure
  }
}

/** Whether a repeated request would fail in the same way. Failures of the server and of its load are not stored. */
const isStoredFailure = ({ status, code }: Failure): boolean => status < 500 && status !== 429 && code !== 'cancelled'

const streamed = (jobId: string): Unrepeatable => ({
  message: `The answer to this 'Idempotency-Key' was a stream, and streams are not stored. It was for job ${jobId}.`,
  facts: { job_id: jobId },
})
