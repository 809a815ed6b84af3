import type { JobSpend } from '../admission/spend.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Lease } from '../models/fleet.ts'
import { type JobRecord, type RowKey, type Store, type Usage, type WaitingJob, waitingOf } from '../store/store.ts'
import { workOf } from '../tasks/registry.ts'
import type { RunJob, RunReport, RunResult } from '../tasks/run-job.ts'
import { AttemptTimeout, attemptJob, type EndFacts, type KeptSlot, openAttemptEnds } from './attempts.ts'
import type { Dispatch } from './dispatch.ts'
import type { JobDurations } from './job-durations.ts'
import type { FallbackOfJob } from './job-fallbacks.ts'
import type { LiveRuns } from './live-runs.ts'
import { noSlot } from './no-slot.ts'
import type { Queue, RunningEntry } from './queue.ts'
import { decideRetry } from './retry.ts'
import { type CrashPart, engineEndOf, type Suspects } from './suspects.ts'

export interface RunsOptions {
  store: Store['jobs']
  run: RunJob
  queue: Queue
  live: LiveRuns
  durations: JobDurations
  suspects: Suspects
  /** Called with what work of a token has used. */
  used: (tokenId: string, usage: Usage) => void
  log: Log
  clock: { now(): number }
  dispatch: () => Dispatch
  /** The organizations whose jobs are not started. */
  suspended: () => ReadonlySet<string>
  /** Called when a job has ended with a result that is billed, before `ended`. */
  settled: JobSpend['settle']
  /** Called when a job has ended for good. */
  ended: (job: RowKey) => void
  fallbackOf: FallbackOfJob
  /** Called when a job waits until this time, epoch milliseconds. */
  delayed: (until: number) => void
}

interface Run {
  readonly entry: RunningEntry
  readonly abort: AbortController
  /** Set once it is claimed. */
  job: JobRecord | undefined
  done: Promise<void>
}

interface Outcome {
  end: RunResult | Failure
  /** Its part in the end of its engine. */
  crash: CrashPart
}

/** How much later an entry begins now than in the reference order, milliseconds; null if that had not begun it. */
const behindMs = ({ referenceStart }: RunningEntry): number | null =>
  referenceStart !== null && Number.isFinite(referenceStart) ? Math.round(performance.now() - referenceStart) : null

/** How long a stopped run may take to end before its job's end no longer waits for it, milliseconds. */
const graceMs = 10_000

/** Runs the jobs that were given a slot: claims each, runs it, and writes its end. */
export function openRuns(options: RunsOptions) {
  const { store, run, queue, live, durations, suspects, used, log, clock, dispatch } = options
  const { suspended, settled, ended, delayed, fallbackOf } = options
  const running = new Map<string, Run>()
  const ends = openAttemptEnds({ store, run, log, settled, ended })
  /**
   * Slots kept for the job that follows one, by the id of the first, while its end is written; `reported`: its end is
   * announced.
   */
  const kept = new Map<string, { lease: Lease; reported: Promise<void> }>()
  let draining = false

  async function execute(one: Run, slot: Lease | Failure): Promise<void> {
    const { entry } = one
    const { modelId, organizationId, id } = entry.job
    let job: JobRecord | undefined
    try {
      job = await store.claim(organizationId, id, clock.now(), behindMs(entry))
    } catch (thrown) {
      const failure = Failure.from(thrown)
      if (failure.code === 'internal_error') {
        queue.skip(entry)
        free(entry.job, slot)
        throw thrown
      }
      // The disk is full, or the store is closing: the job keeps its rank.
      queue.putBack(entry)
      // Pause first, or the slot would go to the same job again.
      if (!draining) dispatch().refused(modelId, failure)
      return free(entry.job, slot)
    }
    if (!job) {
      // The job no longer waits: the slot goes to another one.
      queue.skip(entry)
      running.delete(id)
      return free(entry.job, slot)
    }
    await carryOut(one, job, slot)
  }

  /** Runs a claimed job on its slot, or fails it with the reason why it has none. */
  async function carryOut(one: Run, job: JobRecord, slot: Lease | Failure): Promise<void> {
    const { entry } = one
    const { id } = job
    one.job = job
    if (draining) {
      free(job, slot)
      queue.skip(entry)
      return void (await store.release(job, 0))
    }
    live.moved(job)
    const liveRun = live.begin(job)
    if (suspects.has(id)) liveRun.report.log('WARN', suspects.runsAlone(id) ? runsAlone : runsAgain)
    try {
      const { end, crash, engineId, used } = await runOn(one, job, slot, liveRun.report)
      const lines = liveRun.lines()
      const logs = lines.length > 0 ? JSON.stringify(lines) : null
      await write(one, job, { end, crash }, { engineId, used, at: clock.now(), logs })
    } finally {
      live.end(id, liveRun)
      live.moved(job)
    }
  }

  /** Runs the attempt. The slot is free as soon as it ends: no engine waits for a commit. */
  async function runOn({ entry, abort }: Run, job: JobRecord, slot: Lease | Failure, report: RunReport) {
    const since = performance.now()
    const lease = slot instanceof Failure ? undefined : slot
    if (lease) {
      lease.organizationId = job.organizationId
      lease.traceparent = job.traceparent ?? undefined
    }
    const outcome =
      slot instanceof Failure
        ? { end: slot, unresponsive: undefined }
        : await attemptJob(job, slot, { run, abort, report, graceMs })
    const { end, unresponsive } = outcome
    const ranMs = performance.now() - since
    const slotUse = lease?.used()
    if (lease && unresponsive) void settleLate(job, lease, unresponsive)
    const crash = end instanceof Failure && lease ? suspects.failed(job.id, engineEndOf(end, lease, ranMs)) : 'none'
    // First, so that the choice of the next entry considers what this one has used.
    queue.ran(entry, ranMs, lease !== undefined && !abort.signal.aborted)
    free(job, unresponsive ? undefined : lease)
    if (!(end instanceof Failure)) {
      durations.ran(job.modelId, workOf(job.task, job.inputs), ranMs)
      // A batch runs whenever there is capacity, so it does not count against a rate.
      if (job.class !== 'batch') used(job.tokenId, end.usage)
    } else if (end.engineText)
      log.warn('An engine failed a request', {
        job: job.id,
        model: job.modelId,
        engine_error: end.engineText,
        traceparent: job.traceparent ?? undefined,
      })
    else if (end.code === 'internal_error') log.error('A job failed inside infer', { job: job.id }, end.cause)
    return { end, crash, engineId: lease?.engineId || null, used: slotUse }
  }

  /** A stopped run that does not end occupies its slot until it does. */
  async function settleLate(job: JobRecord, lease: Lease, work: Promise<RunResult>): Promise<void> {
    try {
      await ends.late(job, await work, { engineId: lease.engineId, used: undefined, at: clock.now(), logs: null })
    } catch {
      // It ended with an error, or the store is closed: either way its end is written already.
    } finally {
      lease.release()
    }
  }

  /** Keeps a slot, so that the next node of the execution can be claimed in the commit of this end. */
  function keepSlot({ id, modelId, organizationId }: JobRecord): KeptSlot | undefined {
    const lease = draining || suspended().has(organizationId) ? undefined : dispatch().spare(modelId)
    if (!lease) return undefined
    const { promise: reported, resolve } = Promise.withResolvers<void>()
    kept.set(id, { lease, reported })
    const returnSlot = () => {
      resolve()
      if (kept.delete(id)) free({ modelId, id }, lease)
    }
    return { modelId, returnSlot }
  }

  function start(entry: RunningEntry, work: (one: Run) => Promise<void>): void {
    const one: Run = { entry, abort: new AbortController(), job: undefined, done: Promise.resolve() }
    running.set(entry.job.id, one)
    one.done = work(one)
      .catch((thrown: unknown) => giveUp(entry.job, thrown))
      .finally(() => {
        // A job that was released may be running again by now.
        if (running.get(entry.job.id) === one) running.delete(entry.job.id)
        dispatch().check(entry.job.modelId)
      })
  }

  /** Fails a job that could not be claimed or ended: it would hold up others, or run again after each start. */
  async function giveUp(job: RowKey, thrown: unknown): Promise<void> {
    const { code } = Failure.from(thrown)
    log[code === 'shutting_down' ? 'warn' : 'error']('A job could not be run to its end', { job: job.id }, thrown)
    // Otherwise the claim stays: the store releases it when it closes or starts.
    if (code !== 'internal_error') return
    try {
      if (await store.giveUp(job.organizationId, job.id, clock.now())) ended(job)
    } catch (again) {
      log.error('A job could not be failed', { job: job.id }, again)
    }
  }

  /** Returns the slot of a job that runs no longer; undefined: it still occupies its slot. */
  function free({ modelId, id }: Pick<WaitingJob, 'modelId' | 'id'>, slot: Lease | Failure | undefined): void {
    dispatch().suspectLeft(modelId, id)
    if (slot && !(slot instanceof Failure)) slot.release()
    dispatch().freed(modelId)
  }

  async function write({ abort }: Run, job: JobRecord, { end, crash }: Outcome, facts: EndFacts): Promise<void> {
    if (!(end instanceof Failure))
      return void (await ends.completed(job, end, facts, job.parent ? keepSlot(job) : undefined))
    // The cancellation is already committed: this attempt has nothing to write.
    if (abort.signal.aborted && end.code === 'cancelled') return
    const { attempt, maxAttempts } = job
    const overrun = end instanceof AttemptTimeout
    const decision = decideRetry({
      failure: end,
      overrun,
      crash,
      releases: Math.max(0, job.claims - attempt),
      attempt,
      maxAttempts,
      now: facts.at,
      random: Math.random(),
    })
    // One without a slot has been given up for a fallback, or its model can never serve it.
    const mayMove = facts.used === undefined ? !draining : decision.do === 'fail' && !overrun
    const fallback = mayMove ? await fallbackOf(job, end) : undefined
    if (fallback?.begin()) {
      await ends.moved(job, end, fallback, facts)
      return delayed(facts.at)
    }
    if (decision.do === 'release' || decision.do === 'repeat') {
      if (decision.do === 'repeat')
        log.warn('A job runs again, uncharged, because its engine ended or cannot be reached', { job: job.id })
      else if (!draining) dispatch().refused(job.modelId, end)
      const at = decision.do === 'release' ? decision.at : 0
      if (!(await ends.release(job, at)) || draining) return
      if (at > 0) delayed(at)
      else queue.offer(waitingOf(job))
      // Its start deadline was not watched while it ran, and applies again.
      if (job.startBy !== null) delayed(job.startBy)
      return
    }
    const retryAt = decision.do === 'retry' ? decision.at : null
    await ends.failed(job, end, retryAt, facts)
    if (retryAt !== null) delayed(retryAt)
  }

  return {
    begin: (entry: RunningEntry, slot: Lease | Failure): void => start(entry, one => execute(one, slot)),
    /** Runs a job that waits in no queue, because it needs no engine. */
    beginWithoutEngine(job: WaitingJob): void {
      dispatch().hold(job.modelId)
      start(queue.chargeNew(job), one => execute(one, noSlot(job.modelId)))
    },
    /**
     * Runs a job that was claimed in the commit of its predecessor's end, on the kept slot. Call it before that end is
     * announced.
     */
    runSuccessor(before: string, job: JobRecord): void {
      const { lease, reported } = kept.get(before)!
      kept.delete(before)
      // It may be stopped from now on, and starts when the end of its predecessor is announced.
      start(queue.chargeNew(waitingOf(job)), one => reported.then(() => carryOut(one, job, lease)))
    },
    /** Stops the run of the job, if there is one. */
    stop: (id: string, why: Failure): void => running.get(id)?.abort.abort(why),
    has: (id: string): boolean => running.has(id),
    get size(): number {
      return running.size
    },
    /** From now on claimed jobs are released. */
    drain(): void {
      draining = true
    },
    done: async (): Promise<void> => void (await Promise.allSettled([...running.values()].map(one => one.done))),
    stopAll(why: Failure): void {
      for (const { abort } of running.values()) abort.abort(why)
    },
    /** Releases jobs whose runs have not stopped: their late results will change nothing. */
    giveBackAll: async (): Promise<void> =>
      void (await Promise.allSettled([...running.values()].flatMap(({ job }) => (job ? [store.release(job, 0)] : [])))),
  }
}

/** Lines in the log of a job that was in flight when an engine ended. */
const runsAlone = 'An engine ended while this job ran. It now runs alone, so that the request at fault becomes known.'
const runsAgain = 'An engine ended while this job and others ran. The job runs again; that attempt was not counted.'
