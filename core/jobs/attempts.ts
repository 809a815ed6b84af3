import { setTimeout as delay } from 'node:timers/promises'
import type { JobSpend } from '../admission/spend.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Lease, SlotUse } from '../models/fleet.ts'
import { type JobOutcome, type JobRecord, jobErrorOf, type RowKey, type Store } from '../store/store.ts'
import type { RunJob, RunReport, RunResult } from '../tasks/run-job.ts'
import { metered, meteredUsage, noUsage } from '../usage.ts'
import type { JobFallback } from './job-fallbacks.ts'

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

/** The facts of an attempt's end besides its outcome. */
export interface EndFacts {
  engineId: string | null
  /** What the attempt has used of the devices, for one that failed: it is recorded and costs nothing. */
  used: SlotUse | undefined
  at: number
  /** JSON text of LogLine[], or null. */
  logs: string | null
}

/**
 * A slot that is kept while an end is written, for the job that follows; `returnSlot` releases it unless it was used.
 */
export interface KeptSlot {
  modelId: string
  returnSlot(): void
}

/** Writes the ends of attempts, each once, and undoes the results that were not accepted. */
export function openAttemptEnds(options: {
  store: Pick<Store['jobs'], 'settle' | 'release'>
  run: Pick<RunJob, 'undo' | 'written'>
  log: Log
  /** Called when a job has ended with a result that is billed, before `ended`. */
  settled: JobSpend['settle']
  /** Called when a job has ended for good. */
  ended: (job: RowKey) => void
}) {
  const { store, run, log, settled, ended } = options
  /** False: the claim no longer holds, and nothing was changed. */
  async function settle(
    job: JobRecord,
    ran: RunResult | undefined,
    outcome: JobOutcome,
    slot?: KeptSlot,
  ): Promise<boolean> {
    let unusedSlot = slot
    // Kept for one try only: a full store may stay full for long.
    const write = () => {
      const first = unusedSlot
      unusedSlot = undefined
      return store
        .settle(job, outcome, first?.modelId)
        .then(accepted => {
          if (!accepted) return false
          if (outcome.status === 'completed') {
            const fallbackModelId = job.fallbackReason === null ? undefined : job.modelId
            settled(job.id, { ...job, cost: outcome.cost, finishedAt: outcome.at, fallbackModelId })
          }
          if (ran) run.written?.(job, ran)
          return true
        })
        .finally(() => first?.returnSlot())
    }
    const accepted = await persistently(write).catch(async (thrown: unknown) => {
      if (!ran || Failure.from(thrown).code !== 'internal_error') throw thrown
      // The store cannot hold the result: the job fails instead, and its files are removed.
      log.error('A result could not be stored', { job: job.id }, thrown)
      const { at, engineId, logs } = outcome
      const instead = { ...failed(job, Failure.from(thrown)), retryAt: null, engineId, at, logs }
      const ended = await store.settle(job, instead)
      if (ended) await undo(job, ran)
      return ended
    })
    if (!accepted) {
      log.info('A late result was dropped', { job: job.id, status: outcome.status })
      if (ran) await undo(job, ran)
      return false
    }
    if (outcome.status === 'completed' || outcome.retryAt === null) ended(job)
    return true
  }

  /** Writes a late result: the store changes nothing and counts it. */
  const late = async (job: JobRecord, ran: RunResult, facts: EndFacts): Promise<void> => {
    await settle(job, ran, success(ran, facts)).catch(() => undo(job, ran))
  }

  const undo = (job: JobRecord, ran: RunResult): Promise<void> =>
    run
      .undo(ran, job)
      .catch((thrown: unknown) => log.error('The files of a late run could not be removed', { job: job.id }, thrown))

  /** Repeats the write until it succeeds: a finished result is not lost to a full disk or a full command queue. */
  async function persistently<Result>(write: () => Promise<Result>): Promise<Result> {
    for (let waitMs = 100; ; waitMs = Math.min(2 * waitMs, 5_000)) {
      try {
        return await write()
      } catch (thrown) {
        const { code } = Failure.from(thrown)
        if (code !== 'disk_full' && code !== 'no_capacity') throw thrown
      }
      await delay(waitMs, undefined, { ref: false })
    }
  }

  return {
    completed: (job: JobRecord, ran: RunResult, facts: EndFacts, slot?: KeptSlot): Promise<boolean> =>
      settle(job, ran, success(ran, facts), slot),
    failed: (job: JobRecord, failure: Failure, retryAt: number | null, facts: EndFacts): Promise<boolean> =>
      settle(job, undefined, { ...failed(job, failure), ...attemptOf(facts), retryAt }),
    /** Ends the attempt; the next one is that of another model. */
    async moved(job: JobRecord, failure: Failure, fallback: JobFallback, facts: EndFacts): Promise<void> {
      const { modelId, reason, held, moved, dropped } = fallback
      const accepted = await settle(job, undefined, {
        ...failed(job, failure),
        ...attemptOf(facts),
        retryAt: facts.at,
        fallback: { modelId, reason, held },
      })
      // It was cancelled while the fallback was looked for.
      if (accepted) moved()
      else dropped()
    },
    /** Releases the claim until this time; the attempt is not charged. False: the claim no longer holds. */
    release: (job: JobRecord, at: number): Promise<boolean> => persistently(() => store.release(job, at)),
    late,
  }
}

/** The facts of a failed attempt: its time on the slot is recorded, and costs nothing. */
const attemptOf = ({ used, ...facts }: EndFacts) => ({
  ...facts,
  ...(used ? { usage: meteredUsage({ ...noUsage, ...used }) } : {}),
})

const success = ({ usage, cost, ...ran }: RunResult, { used: _counted, ...facts }: EndFacts): JobOutcome => ({
  status: 'completed',
  ...ran,
  usage: meteredUsage(usage),
  cost: metered(cost),
  ...facts,
})

const failed = ({ attempt }: JobRecord, failure: Failure) => ({
  status: 'failed' as const,
  error: jobErrorOf(failure, attempt),
})
