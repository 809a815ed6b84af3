import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Demand, Fleet, Lease } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import type { WaitingJob } from '../store/store.ts'
import type { Queue, RunningEntry } from './queue.ts'
import type { Refill } from './refill.ts'
import { failsJobs, pauseMs } from './retry.ts'
import type { Suspects } from './suspects.ts'
import type { WaitingCalls } from './waiting-calls.ts'

/** Why the jobs of a model are not dispatched, and for how much longer, milliseconds. */
export interface Pause {
  readonly failure: Failure
  readonly forMs: number
}

/** The dispatch state of one model. */
interface ModelDispatch {
  /** Slots that jobs occupy. */
  held: number
  /** Whether the next jobs are being read from the store. */
  reading: boolean
  pause: { failure: Failure; byFleet: boolean; until: number; timer: NodeJS.Timeout } | undefined
}

export interface DispatchOptions {
  fleet: Pick<Fleet, 'take' | 'demandChanged' | 'connect'>
  /** The current configuration, including disabled models. */
  find: (modelId: string) => Model | undefined
  queue: Queue
  calls: WaitingCalls
  refill: Refill
  suspects: Suspects
  log: Log
  /** Runs the job of the entry, or fails it with the reason why it gets no slot. Calls `freed` once. */
  begin: (entry: RunningEntry, slot: Lease | Failure) => void
  /** Called when the fleet refuses the jobs of a model, which wait. */
  jobsRefused?: (modelId: string, failure: Failure) => void
  /** How many jobs have run whose end is not written yet. */
  unwritten: () => number
  /** How many slots jobs may occupy at once, in total and of one model. Calls are not limited by these. */
  slots: number
  slotsPerModel: number
}

/** How many jobs may be given up at once while other jobs occupy all slots. */
const slotsToGiveUp = 16

/**
 * Pairs waiting entries with free slots. The slot comes first: only when one is free is the next entry chosen, so that
 * the fair order holds until the last moment. Every change wakes it, including the fleet's offers; `check` may be
 * called at any time.
 */
export function openDispatch(options: DispatchOptions) {
  const { fleet, find, queue, calls, refill, suspects, log, begin, jobsRefused, unwritten } = options
  const { slots, slotsPerModel } = options
  const models = new Map<string, ModelDispatch>()
  /** Models whose demand was reported to the fleet. */
  const demanded = new Set<string>()
  let held = 0
  let draining = false

  function stateOf(modelId: string): ModelDispatch {
    let state = models.get(modelId)
    if (!state) models.set(modelId, (state = { held: 0, reading: false, pause: undefined }))
    return state
  }

  function hold(modelId: string): void {
    stateOf(modelId).held++
    held++
  }

  /** How many more slots jobs of the model may occupy. */
  const room = (modelId: string): number => {
    const of = models.get(modelId)
    return unwritten() >= slots ? 0 : Math.max(0, Math.min(slotsPerModel - (of?.held ?? 0), slots - held))
  }

  /** How many jobs of the model could start now if they had slots. */
  function ready(modelId: string): number {
    const { background } = queue.waiting(modelId)
    if (background === 0 || draining || models.get(modelId)?.pause || !find(modelId)?.enabled) return 0
    return Math.min(background, room(modelId))
  }

  function demand(modelId: string): Demand | undefined {
    const { interactive } = queue.waiting(modelId)
    const background = ready(modelId)
    if (interactive === 0 && background === 0) return undefined
    const { oldestWaitMs, workMs, referenceStart } = queue.load(modelId, { jobs: background > 0 })
    return { interactive, background, oldestWaitMs, expectedWorkMs: workMs, referenceStart }
  }

  /** Gives free slots to the next entries, as long as there are both. */
  function serve(modelId: string): void {
    for (let jobs = ready(modelId) > 0; ; jobs &&= ready(modelId) > 0) {
      const next = queue.next(modelId, { jobs })
      if (!next) return
      if (!('job' in next)) {
        void readNext(modelId, next)
        jobs = false
        continue
      }
      const call = calls.find(next.job.id)
      const waitedMs = call ? calls.waitedMs(call) : undefined
      // While a suspect waits for an idle engine, nothing overtakes it: otherwise it might wait for ever.
      const lease = fleet.take(modelId, waitedMs, suspects.runsAlone(next.job.id), call?.prompt)
      if (!lease) return
      const entry = queue.take(next)
      if (call) calls.grant(call, { lease, entry })
      else {
        hold(modelId)
        begin(entry, lease)
        refill.wake()
      }
    }
  }

  /** Reads the next jobs from the store, then serves them. Calls do not wait for that. */
  async function readNext(modelId: string, next: Parameters<Refill['now']>[0]): Promise<void> {
    const state = stateOf(modelId)
    if (state.reading && 'reading' in next) return
    state.reading = true
    try {
      await refill.now(next)
    } catch (thrown) {
      return refused(modelId, Failure.from(thrown))
    } finally {
      state.reading = false
    }
    check(modelId)
  }

  /** Call it when the model may be able to serve more, or when its demand may have decreased. */
  function check(modelId: string): void {
    const { background } = queue.waiting(modelId)
    if (background > 0 && !draining && !find(modelId)) failJobs(modelId, modelRemoved(modelId))
    else if (queue.waits(modelId)) serve(modelId)
    reportDemand(modelId)
    const state = models.get(modelId)
    if (state && background === 0 && state.held === 0 && !state.reading && !state.pause) models.delete(modelId)
  }

  function reportDemand(modelId: string): void {
    const before = demanded.has(modelId)
    const after = queue.waiting(modelId).interactive > 0 || ready(modelId) > 0
    if (after) demanded.add(modelId)
    else demanded.delete(modelId)
    if (before || after) fleet.demandChanged(modelId)
  }

  /**
   * Pauses the jobs of the model: they wait and show the reason; none has begun, so none is charged. A pause that the
   * fleet requested ends early when it offers a slot.
   */
  function pauseJobs(modelId: string, failure: Failure, byFleet = false): void {
    if (failure.code === 'internal_error') log.error('A slot could not be taken', { model: modelId }, failure.cause)
    const state = stateOf(modelId)
    // The fleet repeats its refusal on every check; that must not extend the pause.
    if (byFleet && state.pause) return void (state.pause.failure = failure)
    const forMs = pauseMs(failure)
    clearTimeout(state.pause?.timer)
    const resume = () => {
      state.pause = undefined
      check(modelId)
    }
    const timer = setTimeout(resume, forMs).unref()
    state.pause = { failure, byFleet, until: performance.now() + forMs, timer }
  }

  function refused(modelId: string, failure: Failure): void {
    pauseJobs(modelId, failure)
    reportDemand(modelId)
  }

  /** Fails the jobs of a model that may never run: it was removed from the configuration, or can never be loaded. */
  function failJobs(modelId: string, failure: Failure): void {
    while (room(modelId) > 0) {
      const next = queue.next(modelId)
      if (!next) return
      if (!('job' in next)) return void readNext(modelId, next)
      if (calls.find(next.job.id)) return
      const entry = queue.take(next)
      hold(modelId)
      begin(entry, failure)
    }
  }

  function checkAllModels(): void {
    for (const modelId of new Set([...models.keys(), ...queue.models()])) check(modelId)
  }

  fleet.connect({
    waits: modelId => queue.waits(modelId),
    demand,
    reference: queue.reference(modelId => ready(modelId) > 0),
    serve(modelId) {
      const state = models.get(modelId)
      if (state?.pause?.byFleet) {
        clearTimeout(state.pause.timer)
        state.pause = undefined
      }
      serve(modelId)
    },
    refuse(modelId, failure, withinMs, waitedMs) {
      calls.refuse(modelId, failure, withinMs, waitedMs)
      if (withinMs < Number.POSITIVE_INFINITY || draining || queue.waiting(modelId).background === 0) return
      const reason = failure()
      // Not from here: the fleet is in the middle of its own decision.
      if (!find(modelId)) setImmediate(check, modelId)
      else if (failsJobs(reason)) setImmediate(failJobs, modelId, reason)
      else {
        pauseJobs(modelId, reason, true)
        if (jobsRefused) setImmediate(jobsRefused, modelId, reason)
      }
    },
  })

  return {
    check,
    /** Counts a job that runs without a slot. `freed` ends it. */
    hold,
    /** A slot for a job that does not exist yet, if nothing else waits for it. `freed` returns it. */
    spare(modelId: string): Lease | undefined {
      if (draining || queue.waits(modelId) || !find(modelId)?.enabled) return undefined
      const lease = models.get(modelId)?.pause || room(modelId) === 0 ? undefined : fleet.take(modelId)
      if (lease) hold(modelId)
      return lease
    },
    /** A slot for a call if no entry waits: nearly every request takes this path, without a queue entry. */
    takeFree: (modelId: string, prompt?: string | Uint8Array): Lease | undefined =>
      queue.waits(modelId) ? undefined : fleet.take(modelId, undefined, undefined, prompt),
    /**
     * Fails a waiting job without a slot; false: not now. It occupies one until it is claimed, for which some are left
     * where jobs occupy all others.
     */
    giveUp(job: WaitingJob, failure: Failure): boolean {
      if (draining || unwritten() >= slots || held >= slots + slotsToGiveUp) return false
      const entry = queue.takeWaiting(job)
      if (!entry) return true
      hold(job.modelId)
      begin(entry, failure)
      return true
    },
    /** Call it when a job has released its slot. */
    freed(modelId: string): void {
      const full = held >= slots
      stateOf(modelId).held--
      held--
      if (full) checkAllModels()
      else check(modelId)
    },
    refused,
    pause(modelId: string): Pause | undefined {
      const pause = models.get(modelId)?.pause
      return pause && { failure: pause.failure, forMs: Math.max(0, Math.ceil(pause.until - performance.now())) }
    },
    /** Why the fleet refuses the jobs of the model; undefined if it does not. */
    refusal(modelId: string): Failure | undefined {
      const pause = models.get(modelId)?.pause
      return pause?.byFleet ? pause.failure : undefined
    },
    checkAllModels,
    held: (modelId?: string): number => (modelId === undefined ? held : (models.get(modelId)?.held ?? 0)),
    /** Starts no more jobs. Waiting calls are served until the fleet refuses them. */
    close(): void {
      draining = true
      for (const state of models.values()) clearTimeout(state.pause?.timer)
    },
  }
}
export type Dispatch = ReturnType<typeof openDispatch>

const modelRemoved = (modelId: string): Failure =>
  new Failure('model_not_found', `The model '${modelId}' is no longer offered here. Submit the job for another model.`)
