import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Lease } from '../models/fleet.ts'
import type { JobRecord, Store } from '../store/store.ts'
import { workOf } from '../tasks/registry.ts'
import type { RunJob, RunReport, RunResult } from '../tasks/run-job.ts'
import { AttemptTimeout, attempt } from './attempt.ts'
import { type EndFacts, type KeptSlot, openAttemptEnds } from './attempt-ends.ts'
import type { Dispatch } from './dispatch.ts'
import type { JobDurations } from './job-durations.ts'
import type { JobKey, LiveRuns } from './live-runs.ts'
import { type Queue, type RunningEntry, waitingOf } from './queue.ts'
import { decideRetry } from './retry.ts'

export interface RunsOptions {
  store: Store['jobs']
  run: RunJob
  queue: Queue
  live: LiveRuns
  pace: JobDurations
  log: Log
  clock: { now(): number }
  dispatch: () => Dispatch
  /** A job has ended for good. */
  ended: (job: JobKey) => void
  /** A job waits until then. */
  delayed: (until: number) => void
}

interface Run {
  readonly turn: RunningEntry
  readonly abort: AbortController
  /** Once it is claimed. */
  job: JobRecord | undefined
  done: Promise<void>
}

/** How long a run that was told to stop gets to end, before its job's end no longer waits for it. */
const graceMs = 10_000

/** The jobs whose turn has come: each is claimed, run on its slot, and its end is written. */
export function openRuns({ store, run, queue, live, pace, log, clock, dispatch, ended, delayed }: RunsOptions) {
  const running = new Map<string, Run>()
  const ends = openAttemptEnds({ store, run, log, ended })
  /** Slots that are kept for what follows a job, by its id, while its end is written; and when that has been told. */
  const kept = new Map<string, { lease: Lease; reported: Promise<void> }>()
  let draining = false

  async function execute(one: Run, lease: Lease | undefined): Promise<void> {
    const { turn } = one
    const { modelId, organizationId, id } = turn.job
    let job: JobRecord | undefined
    try {
      job = await store.claim(organizationId, id, clock.now())
    } catch (thrown) {
      // No room on the disk, or the store is closing: the job keeps its place.
      queue.putBack(turn)
      // First, or the slot would go to the same job again.
      if (!draining) dispatch().refused(modelId, Failure.from(thrown))
      return free(modelId, lease)
    }
    if (!job) {
      // It does not wait any more: the slot goes to another one.
      queue.passed(turn)
      running.delete(id)
      return free(modelId, lease)
    }
    await carryOut(one, job, lease)
  }

  /** A job that is claimed, on the slot that it has. */
  async function carryOut(one: Run, job: JobRecord, lease: Lease | undefined): Promise<void> {
    const { turn } = one
    const { modelId, id } = job
    one.job = job
    if (draining) {
      free(modelId, lease)
      queue.passed(turn)
      return void (await store.release(job, 0))
    }
    live.moved(job)
    const now = live.begin(job)
    try {
      const { end, engineId } = await runOn(one, job, lease, now.report)
      const lines = now.lines()
      const logs = lines.length > 0 ? JSON.stringify(lines) : null
      await write(one, job, end, { engineId, at: clock.now(), logs })
    } finally {
      live.end(id, now)
      live.moved(job)
    }
  }

  /** The attempt itself. From its end on the slot is free: no engine waits for a commit. */
  async function runOn({ turn, abort }: Run, job: JobRecord, lease: Lease | undefined, report: RunReport) {
    const since = performance.now()
    const came = lease
      ? await attempt(job, lease, { run, abort, report, graceMs })
      : { end: gone(job.modelId), unresponsive: undefined }
    const { end, unresponsive } = came
    const ranMs = performance.now() - since
    if (lease && unresponsive) void outlived(job, lease, unresponsive)
    // First, so that whoever is next is chosen by what this one has had.
    queue.ran(turn, ranMs, lease !== undefined && !abort.signal.aborted)
    free(job.modelId, unresponsive ? undefined : lease)
    if (!(end instanceof Failure)) pace.ran(job.modelId, workOf(job.task, job.inputs), ranMs)
    else if (end.engineText)
      log.warn('An engine failed a request', { job: job.id, model: job.modelId, engine_error: end.engineText })
    else if (end.code === 'internal_error') log.error('A job failed inside infer', { job: job.id }, end.cause)
    return { end, engineId: lease?.engineId ?? null }
  }

  /** A run that was told to stop and did not holds its slot for as long as it goes on. */
  async function outlived(job: JobRecord, lease: Lease, work: Promise<RunResult>): Promise<void> {
    try {
      await ends.late(job, await work, { engineId: lease.engineId, at: clock.now(), logs: null })
    } catch {
      // It stopped at last, or the store is closed: either way its end is written already.
    } finally {
      lease.release()
    }
  }

  /** The next node of an execution may go on where this one has ended, with one commit instead of two. */
  function keep({ id, modelId }: JobRecord): KeptSlot | undefined {
    const lease = draining ? undefined : dispatch().spare(modelId)
    if (!lease) return undefined
    const { promise: reported, resolve } = Promise.withResolvers<void>()
    kept.set(id, { lease, reported })
    const back = () => {
      resolve()
      if (kept.delete(id)) free(modelId, lease)
    }
    return { modelId, back }
  }

  function start(turn: RunningEntry, work: (one: Run) => Promise<void>): void {
    const one: Run = { turn, abort: new AbortController(), job: undefined, done: Promise.resolve() }
    running.set(turn.job.id, one)
    one.done = work(one)
      .catch((thrown: unknown) => {
        // The claim stays: the store gives it back when it closes or starts.
        const level = Failure.from(thrown).code === 'shutting_down' ? 'warn' : 'error'
        log[level]('A job could not be ended', { job: turn.job.id }, thrown)
      })
      .finally(() => {
        // A job that was given back may be running again by now.
        if (running.get(turn.job.id) === one) running.delete(turn.job.id)
        dispatch().look(turn.job.modelId)
      })
  }

  function free(modelId: string, lease: Lease | undefined): void {
    lease?.release()
    dispatch().freed(modelId)
  }

  async function write({ abort }: Run, job: JobRecord, end: RunResult | Failure, facts: EndFacts): Promise<void> {
    if (!(end instanceof Failure)) return ends.completed(job, end, facts, job.parent ? keep(job) : undefined)
    // Cancelled is already committed: there is nothing left to say about this attempt.
    if (abort.signal.aborted && end.code === 'cancelled') return
    const { attempt, maxAttempts } = job
    const overrun = end instanceof AttemptTimeout
    const decision = decideRetry({ failure: end, overrun, attempt, maxAttempts, now: facts.at, random: Math.random() })
    if (decision.do === 'release') {
      if (!draining) dispatch().refused(job.modelId, end)
      if (!(await ends.release(job)) || draining) return
      queue.offer(waitingOf(job))
      // Its deadline was not looked for while it ran, and counts again.
      if (job.startBy !== null) delayed(job.startBy)
      return
    }
    const retryAt = decision.do === 'retry' ? decision.at : null
    await ends.failed(job, end, retryAt, facts)
    if (retryAt !== null) delayed(retryAt)
  }

  return {
    begin: (turn: RunningEntry, lease: Lease | undefined): void => start(turn, one => execute(one, lease)),
    /** A job was claimed with the end of the one before, for the slot that was kept. Call it before that end is told. */
    goOn(before: string, job: JobRecord): void {
      const { lease, reported } = kept.get(before)!
      kept.delete(before)
      // It may be stopped from now on, and begins when what came before it is known to be done.
      start(queue.takeNew(waitingOf(job)), one => reported.then(() => carryOut(one, job, lease)))
    },
    /** Tells the run to stop, if there is one. */
    stop: (id: string, why: Failure): void => running.get(id)?.abort.abort(why),
    has: (id: string): boolean => running.has(id),
    get size(): number {
      return running.size
    },
    /** From now on what is claimed goes back. */
    drain(): void {
      draining = true
    },
    done: async (): Promise<void> => void (await Promise.allSettled([...running.values()].map(one => one.done))),
    stopAll(why: Failure): void {
      for (const { abort } of running.values()) abort.abort(why)
    },
    /** Whoever does not listen is overtaken: its result will come late and change nothing. */
    giveBackAll: async (): Promise<void> =>
      void (await Promise.allSettled([...running.values()].flatMap(({ job }) => (job ? [store.release(job, 0)] : [])))),
  }
}

const gone = (modelId: string): Failure =>
  new Failure('model_not_found', `The model '${modelId}' is no longer offered here. Submit the job for another model.`)
