import { Failure } from '../failure.ts'
import type { Lease } from '../models/fleet.ts'
import type { JobRecord } from '../store/store.ts'
import type { RunJob, RunReport, RunResult } from '../tasks/run-job.ts'

/** What an attempt came to, and the run itself where it goes on although it was told to stop. */
export interface AttemptOutcome {
  end: RunResult | Failure
  unresponsive: Promise<RunResult> | undefined
}

/** Timers hold no more milliseconds than this; nothing runs for 24 days. */
const longestTimerMs = 2 ** 31 - 1

/** The job was stopped because the time for one attempt was over. */
export class AttemptTimeout extends Failure {
  constructor({ id, timeoutMs }: JobRecord) {
    super('timeout', `The job ${id} ran for ${seconds(timeoutMs ?? 0)} s, which is all that it was given (timeout).`)
  }
  override get retryable(): boolean {
    return false
  }
}

const seconds = (ms: number): string => String(Math.round(ms / 100) / 10)

/**
 * Runs one attempt within its time. Never rejects, and resolves at the latest `graceMs` after it was told to stop:
 * whoever does not listen is left behind, and what it brings comes late.
 */
export async function attempt(
  job: JobRecord,
  lease: Lease,
  { run, abort, report, graceMs }: { run: RunJob; abort: AbortController; report: RunReport; graceMs: number },
): Promise<AttemptOutcome> {
  const { signal } = abort
  if (signal.aborted) return { end: Failure.from(signal.reason), unresponsive: undefined }
  const overrun = () => abort.abort(new AttemptTimeout(job))
  const timer = job.timeoutMs === null ? undefined : setTimeout(overrun, Math.min(job.timeoutMs, longestTimerMs))
  let grace: NodeJS.Timeout | undefined
  const left = Promise.withResolvers<'unresponsive'>()
  const stopped = () => {
    grace = setTimeout(left.resolve, graceMs, 'unresponsive').unref()
  }
  signal.addEventListener('abort', stopped)
  // In a microtask of its own, so that what it throws at once is a rejection too.
  const work = Promise.resolve().then(() => {
    signal.throwIfAborted()
    return run(job, lease, signal, report)
  })
  try {
    const came = await Promise.race([work, left.promise])
    if (came !== 'unresponsive') return { end: came, unresponsive: undefined }
    return { end: Failure.from(signal.reason), unresponsive: work }
  } catch (thrown) {
    return { end: Failure.from(signal.aborted ? signal.reason : thrown), unresponsive: undefined }
  } finally {
    clearTimeout(timer)
    clearTimeout(grace)
    signal.removeEventListener('abort', stopped)
  }
}
