import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Demand, Fleet, Lease } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import type { Queue, RunningEntry } from './queue.ts'
import type { Refill } from './refill.ts'
import { pauseMs } from './retry.ts'
import type { WaitingCalls } from './waiting-calls.ts'

/** Why the jobs of a model are not dispatched, and for how much longer. */
export interface Pause {
  readonly failure: Failure
  readonly forMs: number
}

/** What is dispatched for one model. */
interface ModelDispatch {
  /** Slots that jobs hold. */
  held: number
  /** Whether the jobs that are next are being read from the store. */
  reading: boolean
  pause: { failure: Failure; byFleet: boolean; until: number; timer: NodeJS.Timeout } | undefined
}

export interface DispatchOptions {
  fleet: Pick<Fleet, 'take' | 'demandChanged' | 'connect'>
  /** As configured now, disabled ones too. */
  find: (modelId: string) => Model | undefined
  queue: Queue
  calls: WaitingCalls
  refill: Refill
  log: Log
  /** Runs the job of the turn, and calls `freed` once. Without a lease: its model is gone, and that is its end. */
  begin: (turn: RunningEntry, lease: Lease | undefined) => void
  /** How many jobs have run whose end is not written yet. */
  unwritten: () => number
  /** Slots that jobs hold at once, in all and of one model. Calls are not bounded by these. */
  slots: number
  slotsPerModel: number
}

/**
 * Pairs what waits with free slots. The slot comes first: only when one is free is it decided whose turn it is, so that
 * everything waits under the fair order until the last moment. Woken by every change, by the fleet's offers included;
 * `look` may be called at any time.
 */
export function openDispatch(options: DispatchOptions) {
  const { fleet, find, queue, calls, refill, log, begin, unwritten, slots, slotsPerModel } = options
  const models = new Map<string, ModelDispatch>()
  /** Models whose demand the fleet was told of. */
  const demanded = new Set<string>()
  let held = 0
  let draining = false

  function stateOf(modelId: string): ModelDispatch {
    let state = models.get(modelId)
    if (!state) models.set(modelId, (state = { held: 0, reading: false, pause: undefined }))
    return state
  }

  /** How many more slots jobs of the model may hold. */
  const room = (modelId: string): number => {
    const of = models.get(modelId)
    return unwritten() >= slots ? 0 : Math.max(0, Math.min(slotsPerModel - (of?.held ?? 0), slots - held))
  }

  /** How many jobs of the model could begin now if they had slots. */
  function ready(modelId: string): number {
    const { background } = queue.waiting(modelId)
    if (background === 0 || draining || models.get(modelId)?.pause || !find(modelId)?.enabled) return 0
    return Math.min(background, room(modelId))
  }

  function demand(modelId: string): Demand | undefined {
    const { interactive } = queue.waiting(modelId)
    const background = ready(modelId)
    if (interactive === 0 && background === 0) return undefined
    const { oldestWaitMs, workMs } = queue.load(modelId, { jobs: background > 0 })
    return { interactive, background, oldestWaitMs, expectedWorkMs: workMs }
  }

  /** Gives free slots to those whose turn it is, as long as there are both. */
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
      const lease = fleet.take(modelId, call ? calls.waitedMs(call) : undefined)
      if (!lease) return
      const turn = queue.take(next)
      if (call) calls.grant(call, { lease, turn })
      else {
        stateOf(modelId).held++
        held++
        begin(turn, lease)
        refill.wake()
      }
    }
  }

  /** The job that is next is in the store: it is read, and served then. Calls do not wait for that. */
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
    look(modelId)
  }

  /** Something may be possible for the model that was not before, or less is wanted of it. */
  function look(modelId: string): void {
    const { background } = queue.waiting(modelId)
    if (background > 0 && !draining && !find(modelId)) failRemoved(modelId)
    else if (queue.waits(modelId)) serve(modelId)
    tellDemand(modelId)
    const state = models.get(modelId)
    if (state && background === 0 && state.held === 0 && !state.reading && !state.pause) models.delete(modelId)
  }

  function tellDemand(modelId: string): void {
    const before = demanded.has(modelId)
    const after = queue.waiting(modelId).interactive > 0 || ready(modelId) > 0
    if (after) demanded.add(modelId)
    else demanded.delete(modelId)
    if (before || after) fleet.demandChanged(modelId)
  }

  /**
   * The jobs of the model wait and tell the reason; none has begun, so none is charged. A pause that the fleet asked for
   * ends early when it offers a slot.
   */
  function pauseJobs(modelId: string, failure: Failure, byFleet = false): void {
    if (failure.code === 'internal_error') log.error('A slot could not be had', { model: modelId }, failure.cause)
    const state = stateOf(modelId)
    // The fleet says the same again whenever it looks; that must not make the pause longer.
    if (byFleet && state.pause) return void (state.pause.failure = failure)
    const forMs = pauseMs(failure)
    clearTimeout(state.pause?.timer)
    const over = () => {
      state.pause = undefined
      look(modelId)
    }
    const timer = setTimeout(over, forMs).unref()
    state.pause = { failure, byFleet, until: performance.now() + forMs, timer }
  }

  function refused(modelId: string, failure: Failure): void {
    pauseJobs(modelId, failure)
    tellDemand(modelId)
  }

  /** The model is not configured any more, and may never be again: its jobs are taken as if to run, and fail. */
  function failRemoved(modelId: string): void {
    while (room(modelId) > 0) {
      const next = queue.next(modelId)
      if (!next) return
      if (!('job' in next)) return void readNext(modelId, next)
      if (calls.find(next.job.id)) return
      const turn = queue.take(next)
      stateOf(modelId).held++
      held++
      begin(turn, undefined)
    }
  }

  function checkAllModels(): void {
    for (const modelId of new Set([...models.keys(), ...queue.models()])) look(modelId)
  }

  function give(modelId: string): void {
    stateOf(modelId).held--
    held--
  }

  fleet.connect({
    waits: modelId => queue.waits(modelId),
    demand,
    serve(modelId) {
      const state = models.get(modelId)
      if (state?.pause?.byFleet) {
        clearTimeout(state.pause.timer)
        state.pause = undefined
      }
      serve(modelId)
    },
    refuse(modelId, failure, withinMs) {
      calls.refuse(modelId, failure, withinMs)
      if (withinMs < Number.POSITIVE_INFINITY || draining || queue.waiting(modelId).background === 0) return
      if (find(modelId)) pauseJobs(modelId, failure(), true)
      // Not from here: the fleet is in the middle of its own decision.
      else setImmediate(look, modelId)
    },
  })

  return {
    look,
    /** A slot for a job that is not there yet, if nothing else has a use for it. It goes back by `freed`. */
    spare(modelId: string): Lease | undefined {
      if (draining || queue.waits(modelId) || !find(modelId)?.enabled) return undefined
      const lease = models.get(modelId)?.pause || room(modelId) === 0 ? undefined : fleet.take(modelId)
      if (!lease) return undefined
      stateOf(modelId).held++
      held++
      return lease
    },
    /** A slot that nothing waits for, for a call: the way of nearly every request, without a queue entry. */
    takeFree: (modelId: string): Lease | undefined => (queue.waits(modelId) ? undefined : fleet.take(modelId)),
    /** A slot that a job held is given back. */
    freed(modelId: string): void {
      const full = held >= slots
      give(modelId)
      if (full) checkAllModels()
      else look(modelId)
    },
    refused,
    pause(modelId: string): Pause | undefined {
      const pause = models.get(modelId)?.pause
      return pause && { failure: pause.failure, forMs: Math.max(0, Math.ceil(pause.until - performance.now())) }
    },
    checkAllModels,
    held: (modelId?: string): number => (modelId === undefined ? held : (models.get(modelId)?.held ?? 0)),
    /** Begins no job any more. Calls that wait are served until the fleet refuses them. */
    close(): void {
      draining = true
      for (const state of models.values()) clearTimeout(state.pause?.timer)
    },
  }
}
export type Dispatch = ReturnType<typeof openDispatch>
