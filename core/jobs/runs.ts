import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Lease } from '../fleet.ts'
import type { Log } from '../log.ts'
import type { JobOutcome, JobRecord, Store, WaitingJob } from '../store/store.ts'
import { workOf } from '../tasks/work.ts'
import { attempt, Overrun } from './attempt.ts'
import type { Dispatch } from './dispatch.ts'
import type { Live } from './live.ts'
import { metered, meteredUsage } from './metered.ts'
import type { Pace } from './pace.ts'
import type { Queue, Turn } from './queue.ts'
import { decideRetry } from './retry.ts'
import type { Ran, RunJob } from './run.ts'

export interface RunsWish {
  store: Store['jobs']
  run: RunJob
  queue: Queue
  live: Live
  pace: Pace
  log: Log
  clock: { now(): number }
  dispatch: () => Dispatch
  /** A job has ended for good. */
  ended: (job: JobRecord) => void
  /** A job waits until then. */
  delayed: (until: number) => void
}

interface Run {
  readonly turn: Turn
  readonly abort: AbortController
  /** Once it is claimed. */
  job: JobRecord | undefined
  done: Promise<void>
}

/** How long a run that was told to stop gets to end, before its job's end no longer waits for it. */
const graceMs = 10_000

/** The jobs whose turn has come: each is claimed, run on its slot, and its end is written. */
export function openRuns({ store, run, queue, live, pace, log, clock, dispatch, ended, delayed }: RunsWish) {
  const running = new Map<string, Run>()
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
      free(modelId, lease)
      if (!draining) dispatch().refused(modelId, Failure.from(thrown))
      return
    }
    if (!job) {
      queue.passed(turn)
      running.delete(id)
      return dispatch().passOn(modelId, lease)
    }
    one.job = job
    if (draining) {
      free(modelId, lease)
      queue.passed(turn)
      return void (await store.release(job, 0))
    }
    live.moved(job)
    const now = live.begin(job)
    try {
      await write(one, job, await runOn(one, job, lease, now.report), () => {
        const lines = now.lines()
        return lines.length > 0 ? JSON.stringify(lines) : null
      })
    } finally {
      live.end(id, now)
      live.moved(job)
    }
  }

  /** The attempt itself. From its end on the slot is free: no engine waits for a commit. */
  async function runOn({ turn, abort }: Run, job: JobRecord, lease: Lease | undefined, report: Parameters<RunJob>[3]) {
    const since = performance.now()
    const { end, deaf } = lease
      ? await attempt(job, lease, { run, abort, report, graceMs })
      : { end: gone(job.modelId), deaf: undefined }
    const ranMs = performance.now() - since
    if (deaf)
      void deaf
        .then(ran => late(job, lease!, ran))
        .catch(() => {})
        .finally(() => lease!.release())
    free(job.modelId, deaf ? undefined : lease)
    queue.ran(turn, ranMs)
    if (!(end instanceof Failure)) pace.ran(job.modelId, workOf(job.task, job.inputs), ranMs)
    else if (end.code === 'internal_error') log.error('A job failed inside infer', { job: job.id }, end.cause)
    return { end, engineId: lease?.engineId ?? null }
  }

  function free(modelId: string, lease: Lease | undefined): void {
    lease?.release()
    dispatch().freed(modelId)
  }

  async function write(
    { abort }: Run,
    job: JobRecord,
    { end, engineId }: { end: Ran | Failure; engineId: string | null },
    logs: () => string | null,
  ): Promise<void> {
    if (!(end instanceof Failure)) return settle(job, end, completed(end, { engineId, at: clock.now(), logs: logs() }))
    // Cancelled is already committed: there is nothing left to say about this attempt.
    if (abort.signal.aborted && end.code === 'cancelled') return
    const { attempt, maxAttempts } = job
    const now = clock.now()
    const overrun = end instanceof Overrun
    const decision = decideRetry({ failure: end, overrun, attempt, maxAttempts, now, random: Math.random() })
    if (decision.do === 'release') {
      if (!draining) dispatch().refused(job.modelId, end)
      if ((await persistently(() => store.release(job, 0))) && !draining) queue.offer(waitingOf(job))
      return
    }
    const retryAt = decision.do === 'retry' ? decision.at : null
    await settle(job, undefined, { ...failed(job, end), retryAt, engineId, at: now, logs: logs() })
    if (retryAt !== null) delayed(retryAt)
  }

  async function settle(job: JobRecord, ran: Ran | undefined, outcome: JobOutcome): Promise<void> {
    const { settled, job: now } = await persistently(() => store.settle(job, outcome)).catch(
      async (thrown: unknown) => {
        if (!ran || Failure.from(thrown).code !== 'internal_error') throw thrown
        // A result that the store cannot hold: the job ends all the same, and what it made is freed.
        log.error('A result could not be stored', { job: job.id }, thrown)
        const { at, engineId, logs } = outcome
        const instead = { ...failed(job, Failure.from(thrown)), retryAt: null, engineId, at, logs }
        const answer = await store.settle(job, instead)
        if (answer.settled) await undo(job, ran)
        return answer
      },
    )
    if (!settled) {
      log.info('A late result was dropped', { job: job.id, status: outcome.status })
      if (ran) await undo(job, ran)
    } else if (now && now.finishedAt !== null) ended(now)
  }

  /** What comes when nobody waits for it any more changes nothing, and is counted by the store. */
  async function late(job: JobRecord, lease: Lease, ran: Ran): Promise<void> {
    const outcome = completed(ran, { engineId: lease.engineId, at: clock.now(), logs: null })
    await settle(job, ran, outcome).catch(() => undo(job, ran))
  }

  const undo = (job: JobRecord, ran: Ran): Promise<void> =>
    run.undo(ran).catch((thrown: unknown) => log.error('What a late run made was not freed', { job: job.id }, thrown))

  /** What has been done is not lost to a full disk or a full queue of the store: tried until it is written. */
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
    begin(turn: Turn, lease: Lease | undefined): void {
      const one: Run = { turn, abort: new AbortController(), job: undefined, done: Promise.resolve() }
      running.set(turn.job.id, one)
      one.done = execute(one, lease)
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
      void (await Promise.allSettled([...running.values()].map(({ job }) => job && store.release(job, 0)))),
  }
}

const waitingOf = ({ id, organizationId, modelId, rank }: JobRecord): WaitingJob => ({
  id,
  organizationId,
  modelId,
  rank,
})

const gone = (modelId: string): Failure =>
  new Failure('model_not_found', `The model '${modelId}' is no longer offered here. Submit the job for another model.`)

const completed = (
  { result, usage, cost, files, library }: Ran,
  more: { engineId: string | null; at: number; logs: string | null },
): JobOutcome => ({
  status: 'completed',
  result,
  usage: meteredUsage(usage),
  cost: metered(cost),
  files,
  library,
  ...more,
})

const failed = ({ attempt }: JobRecord, { code, message, type, retryable }: Failure) => ({
  status: 'failed' as const,
  error: { code, message, type, retryable, attempt },
})
