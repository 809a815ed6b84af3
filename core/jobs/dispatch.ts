import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Demand, Fleet, Lease } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import type { WaitingJob } from '../store/store.ts'
import type { Queue, RunningEntry } from './queue.ts'
import type { Refill } from './refill.ts'
import { failsJobs, pauseMs } from './retry.ts'
import { openSuspectTurns } from './suspect-turns.ts'
import type { Suspects } from './suspects.ts'
import type { WaitingCall, WaitingCalls } from './waiting-calls.ts'

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
  fleet: Pick<Fleet, 'take' | 'slots' | 'demandChanged' | 'connect'>
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
  const turns = openSuspectTurns(suspects)
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

  function start(entry: RunningEntry, lease: Lease): void {
    const call = calls.find(entry.job.id)
    if (call) return calls.grant(call, { lease, entry })
    hold(entry.job.modelId)
    begin(entry, lease)
    refill.wake()
  }

  const waitedMs = (call: WaitingCall | undefined) => call && calls.waitedMs(call)

  /** Gives free slots to the next entries, as long as there are both. */
  function serve(modelId: string): void {
    serveOvertaken(modelId, true)
    serveInOrder(modelId)
    wakeForSuspects(modelId)
  }

  function wakeForSuspects(modelId: string): void {
    const waiting = new Set(queue.overtakenOf(modelId).map(({ job }) => job.id))
    turns.wakeBy(modelId, waiting, performance.now(), () => check(modelId))
  }

  function serveInOrder(modelId: string): void {
    for (let jobs = ready(modelId) > 0; ; jobs &&= ready(modelId) > 0) {
      const next = queue.next(modelId, { jobs })
      // Nobody is kept waiting by a suspect that runs alone now.
      if (!next) return serveOvertaken(modelId, false)
      if (!('job' in next)) {
        void readNext(modelId, next)
        jobs = false
        continue
      }
      if (suspects.runsAlone(next.job.id)) {
        // Nothing needs to overtake it yet.
        if (fleet.slots(modelId).ready === 0) return
        queue.letOvertake(next)
        turns.waits(modelId, next.job.id, performance.now())
        serveOvertaken(modelId, true)
        continue
      }
      const call = calls.find(next.job.id)
      const lease = fleet.take(modelId, waitedMs(call), undefined, call?.prompt)
      if (!lease) return
      start(queue.take(next), lease)
    }
  }

  /** Gives slots to suspects that found no idle engine. `others`: other requests wait too. */
  function serveOvertaken(modelId: string, others: boolean): void {
    const waiting = queue.overtakenOf(modelId)
    if (waiting.length === 0) return
    if (fleet.slots(modelId).ready === 0) return turns.withoutEngine(modelId, performance.now())
    for (const { job } of waiting) {
      const call = calls.find(job.id)
      if (!call && ready(modelId) === 0) continue
      // Another request may have ended that engine.
      const now = performance.now()
      const turn = suspects.runsAlone(job.id) ? turns.turn(modelId, job.id, { now, others }) : undefined
      if (turn?.how === 'wait') continue
      const alone = turn?.how === 'alone' ? turn : undefined
      const lease = fleet.take(modelId, waitedMs(call), alone, call?.prompt)
      if (!lease) continue
      if (turn) turns.began(modelId, job.id, { now, how: alone ? 'alone' : 'beside', share: () => lease.share?.() })
      else turns.left(modelId, job.id)
      start(queue.takeOvertaken(job)!, lease)
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
    else wakeForSuspects(modelId)
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
    for (const { job } of queue.overtakenOf(modelId)) {
      if (calls.find(job.id) || room(modelId) === 0) continue
      turns.left(modelId, job.id)
      hold(modelId)
      begin(queue.takeOvertaken(job)!, failure)
    }
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
    /** Call it when a call or a job does not run any more, before its slot is free. Cheap. */
    suspectLeft: (modelId: string, id: string): void => turns.left(modelId, id),
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
      turns.close()
      for (const state of models.values()) clearTimeout(state.pause?.timer)
    },
  }
}
export type Dispatch = ReturnType<typeof openDispatch>

const modelRemoved = (modelId: string): Failure =>
  new Failure('model_not_found', `The model '${modelId}' is no longer offered here. Submit the job for another model.`)
