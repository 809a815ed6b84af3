import { Failure } from '../failure.ts'
import type { Lease } from '../models/fleet.ts'
import type { JobRecord } from '../store/store.ts'
import type { RunJob, RunReport, RunResult } from '../tasks/run-job.ts'

/** The end of an attempt; `unresponsive`: the run itself, if it continues although it was stopped. */
export interface AttemptOutcome {
  end: RunResult | Failure
  unresponsive: Promise<RunResult> | undefined
}

/** The longest timer of Node.js, milliseconds; no job runs for 24 days. */
const maxTimerMs = 2 ** 31 - 1

/** The job was stopped because it reached its time limit for one attempt. */
export class AttemptTimeout extends Failure {
  constructor({ id, timeoutMs }: JobRecord) {
    super('timeout', `The job ${id} ran for ${seconds(timeoutMs ?? 0)} s, which is its time limit (timeout).`)
  }
  override get retryable(): boolean {
    return false
  }
}

const seconds = (ms: number): string => String(Math.round(ms / 100) / 10)

/**
 * Runs one attempt within its time limit. Never rejects, and resolves at the latest `graceMs` after it was stopped: a
 * run that does not stop is abandoned, and its result will be late.
 */
export async function attemptJob(
  job: JobRecord,
  lease: Lease,
  { run, abort, report, graceMs }: { run: RunJob; abort: AbortController; report: RunReport; graceMs: number },
): Promise<AttemptOutcome> {
  const { signal } = abort
  if (signal.aborted) return { end: Failure.from(signal.reason), unresponsive: undefined }
  const overrun = () => abort.abort(new AttemptTimeout(job))
  const timer = job.timeoutMs === null ? undefined : setTimeout(overrun, Math.min(job.timeoutMs, maxTimerMs))
  let grace: NodeJS.Timeout | undefined
  const left = Promise.withResolvers<'unresponsive'>()
  const stopped = () => {
    grace = setTimeout(left.resolve, graceMs, 'unresponsive').unref()
  }
  signal.addEventListener('abort', stopped)
  // In its own microtask, so that a synchronous throw is a rejection too.
  const work = Promise.resolve().then(() => {
    signal.throwIfAborted()
    return run(job, lease, signal, report)
  })
  try {
    const outcome = await Promise.race([work, left.promise])
    if (outcome !== 'unresponsive') return { end: outcome, unresponsive: undefined }
    return { end: Failure.from(signal.reason), unresponsive: work }
  } catch (thrown) {
    return { end: Failure.from(signal.aborted ? signal.reason : thrown), unresponsive: undefined }
  } finally {
    clearTimeout(timer)
    clearTimeout(grace)
    signal.removeEventListener('abort', stopped)
  }
}
