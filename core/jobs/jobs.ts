import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { JobOutcome, JobRecord, NewJob, Store, Usage } from '../store/store.ts'
import { metered, meteredUsage } from './metered.ts'
import { decideRetry } from './retry.ts'
import { openWaiters } from './waiters.ts'

/** What running a job comes to. Rejects with Failure, or with the signal's reason once that has aborted. */
export type RunJob = (
  job: JobRecord,
  signal: AbortSignal,
) => Promise<{ result: string; usage: Usage; cost: number; engineId: string | null }>

export interface JobsWish {
  store: Store
  run: RunJob
  log: Log
  clock?: { now(): number }
  /** How many jobs run or wait for an engine at once, in all and of one model. */
  slots?: number
  slotsPerModel?: number
  /** The net below the wake-ups: jobs that came due, and those of another process. */
  tickMs?: number
}

interface Running {
  job: JobRecord
  abort: AbortController
  done: Promise<void>
}

/** After a drain has interrupted a run, how long it gets to end before its job is given back over its head. */
const interruptGraceMs = 2000

const shuttingDown = () =>
  new Failure('shutting_down', 'This server is shutting down. Retry later.', { retryAfterMs: 5000 })

/**
 * Durable jobs: submitted with a commit, run when there is room, ended exactly once. Starts at once with what the
 * store holds.
 */
export function openJobs({
  store,
  run,
  log,
  clock = { now: Date.now },
  slots = 64,
  slotsPerModel = 32,
  tickMs = 1000,
}: JobsWish) {
  const running = new Map<string, Running>()
  const cooling = new Map<string, number>()
  const waiters = openWaiters()
  let next: { at: number; timer: NodeJS.Timeout } | undefined
  let claiming: Promise<void> | undefined
  let again = false
  let draining = false
  const tick = setInterval(wake, tickMs).unref()

  function wake(): void {
    again = true
    claiming ??= claim().finally(() => {
      claiming = undefined
      // Somebody may have woken it between its last look and here.
      if (mayClaim()) wake()
    })
  }

  /** One timer for the earliest time; what comes due after that is found by the tick. */
  function wakeAt(at: number): void {
    if (draining || (next && next.at <= at)) return
    clearTimeout(next?.timer)
    const inMs = Math.min(Math.max(0, at - clock.now()), 3_600_000)
    const due = () => {
      next = undefined
      wake()
    }
    next = { at, timer: setTimeout(due, inMs).unref() }
  }

  const mayClaim = () => again && !draining && running.size < slots

  async function claim(): Promise<void> {
    // In a microtask, so that `claiming` is set before anything here can wake again.
    await Promise.resolve()
    try {
      while (mayClaim()) {
        again = false
        for (const job of await store.jobs.claim(wish())) {
          if (draining) await store.jobs.release(job, 0)
          else begin(job)
        }
      }
    } catch (thrown) {
      // No room on the disk, or the store is closing: the tick tries again.
      if (!Failure.from(thrown).retryable) log.error('Jobs could not be claimed', {}, thrown)
    }
  }

  function begin(job: JobRecord): void {
    const abort = new AbortController()
    // The run begins in a later microtask, when its entry is there to be cancelled.
    const done = Promise.resolve().then(() => execute(job, abort.signal))
    running.set(job.id, { job, abort, done })
  }

  function wish() {
    const counts: Record<string, number> = {}
    for (const { job } of running.values()) counts[job.modelId] = (counts[job.modelId] ?? 0) + 1
    for (const [model, until] of cooling) if (until <= performance.now()) cooling.delete(model)
    return {
      limit: slots - running.size,
      now: clock.now(),
      exclude: [...cooling.keys()],
      perModel: slotsPerModel,
      running: counts,
    }
  }

  async function execute(job: JobRecord, signal: AbortSignal): Promise<void> {
    try {
      await end(job, signal, await attempt(job, signal))
    } catch (thrown) {
      // The claim stays: the store gives it back when it closes or starts.
      const level = Failure.from(thrown).code === 'shutting_down' ? 'warn' : 'error'
      log[level]('A job could not be ended', { job: job.id }, thrown)
    } finally {
      // A job that was given back may be running again by now.
      if (running.get(job.id)?.abort.signal === signal) running.delete(job.id)
      wake()
    }
  }

  async function attempt(job: JobRecord, signal: AbortSignal): Promise<JobOutcome | Failure> {
    try {
      signal.throwIfAborted()
      const { result, usage, cost, engineId } = await run(job, signal)
      return {
        status: 'completed',
        result,
        usage: meteredUsage(usage),
        cost: metered(cost),
        engineId,
        at: clock.now(),
      }
    } catch (thrown) {
      const failure = Failure.from(signal.aborted ? signal.reason : thrown)
      if (failure.code === 'internal_error') log.error('A job failed inside infer', { job: job.id }, failure.cause)
      return failure
    }
  }

  async function end(job: JobRecord, signal: AbortSignal, came: JobOutcome | Failure): Promise<void> {
    if (!(came instanceof Failure)) return settle(job, came)
    // Cancelled is already committed: there is nothing left to say about this attempt.
    if (signal.aborted && came.code === 'cancelled') return
    const { attempt, maxAttempts } = job
    const now = clock.now()
    const decision = decideRetry({ failure: came, attempt, maxAttempts, now, random: Math.random() })
    if (decision.do === 'release') {
      if (came.code !== 'shutting_down') {
        cooling.set(job.modelId, performance.now() + decision.coolMs)
        wakeAt(now + decision.coolMs)
      }
      await persistently(() => store.jobs.release(job, 0))
      return
    }
    const retryAt = decision.do === 'retry' ? decision.at : null
    await settle(job, { ...failed(job, came), retryAt, at: now })
    if (retryAt !== null) wakeAt(retryAt)
  }

  async function settle(job: JobRecord, outcome: JobOutcome): Promise<void> {
    const { settled, job: now } = await persistently(() => store.jobs.settle(job, outcome)).catch((thrown: unknown) => {
      if (outcome.status === 'failed' || Failure.from(thrown).code !== 'internal_error') throw thrown
      // A result that the store cannot hold: the job ends all the same.
      log.error('A result could not be stored', { job: job.id }, thrown)
      return store.jobs.settle(job, { ...failed(job, Failure.from(thrown)), retryAt: null, at: clock.now() })
    })
    if (!settled) log.info('A late result was dropped', { job: job.id, status: outcome.status })
    else if (now && now.finishedAt !== null) waiters.tell(now)
  }

  /** What has been done is not lost to a full disk or a full queue of the store: tried until it is written. */
  async function persistently<Result>(write: () => Promise<Result>): Promise<Result> {
    for (let waitMs = 100; ; waitMs = Math.min(2 * waitMs, 5000)) {
      try {
        return await write()
      } catch (thrown) {
        const failure = Failure.from(thrown)
        if (failure.code !== 'disk_full' && failure.code !== 'no_capacity') throw thrown
      }
      await delay(waitMs, undefined, { ref: false })
    }
  }

  wake()

  return {
    /** Resolves after the commit: from then on the job survives a crash. The same idempotency key finds the same job. */
    async submit(job: NewJob): Promise<{ job: JobRecord; replayed: boolean }> {
      if (draining) throw shuttingDown()
      const submitted = await store.jobs.submit(job)
      if (!submitted.replayed) {
        if (job.notBefore > clock.now()) wakeAt(job.notBefore)
        else wake()
      }
      return submitted
    },

    /**
     * Cancelled once this resolves, whatever runs on; then the run is told. Undefined: the organization has no such
     * job. Throws Failure `job_already_finished`.
     */
    async cancel(organizationId: string, id: string): Promise<JobRecord | undefined> {
      const job = await store.jobs.cancel(organizationId, id, clock.now())
      if (!job) return undefined
      running.get(id)?.abort.abort(new Failure('cancelled', `The job ${id} was cancelled.`))
      waiters.tell(job)
      return job
    },

    /**
     * Resolves with the job when it ends in this process, with undefined when the signal aborts or the server drains.
     * Call it in the same turn as the look that found the job unfinished: an end before that is not told again.
     */
    wait: (id: string, signal: AbortSignal): Promise<JobRecord | undefined> => waiters.wait(id, signal),

    stats: () => ({ running: running.size, draining }),

    /**
     * Takes no more jobs, lets those that run finish for `deadlineMs`, then interrupts them and gives them back
     * uncharged.
     */
    async drain(deadlineMs: number): Promise<{ released: number }> {
      draining = true
      clearInterval(tick)
      clearTimeout(next?.timer)
      const rest = () => Promise.allSettled([claiming, ...[...running.values()].map(({ done }) => done)])
      await Promise.race([rest(), delay(deadlineMs, undefined, { ref: false })])
      const released = running.size
      for (const { abort } of running.values()) abort.abort(shuttingDown())
      await Promise.race([rest(), delay(interruptGraceMs, undefined, { ref: false })])
      // Whoever does not listen is overtaken: its result will come late and change nothing.
      await Promise.allSettled([...running.values()].map(({ job }) => store.jobs.release(job, 0)))
      waiters.letGo()
      return { released }
    },
  }
}
export type Jobs = ReturnType<typeof openJobs>

const failed = ({ attempt }: JobRecord, { code, message, type, retryable }: Failure) => ({
  status: 'failed' as const,
  error: { code, message, type, retryable, attempt },
  engineId: null,
})
