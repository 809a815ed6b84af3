import { type JobSpend, noSpend } from '../admission/spend.ts'
import { Failure, type FailureCode } from '../failure.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Fleet, ModelActivity } from '../models/fleet.ts'
import { type Model, slotWaitMs } from '../models/model.ts'
import { costOf } from '../models/price.ts'
import { callRecord, type FinishedJob, type JobRecord, jobErrorOf, type Usage } from '../store/store.ts'
import { metered, meteredUsage, noUsage } from '../usage.ts'
import { type CallAttempt, type CallEnd, type CallOptions, type RunningCall, runningRecord } from './call.ts'
import type { Dispatch } from './dispatch.ts'
import type { JobDurations } from './job-durations.ts'
import { noSlot } from './no-slot.ts'
import type { Queue, RunningEntry } from './queue.ts'
import type { Recorder } from './recorder.ts'
import type { Suspects } from './suspects.ts'
import {
  type CallSlot,
  queueFull,
  type WaitingCall,
  type WaitingCalls,
  waitedTooLong,
  whenToRetry,
  wouldWaitTooLong,
} from './waiting-calls.ts'

const maxAttempts = 3
/** How often a call that is held is asked whether its wait has become too long, milliseconds. */
const expectEveryMs = 10_000

/** Whether a call would wait for a load that will not end in time. Of busy slots nobody knows, and of a first load. */
const inVain = ({ status, etaMs, etaIsMeasured }: ModelActivity, leftMs: number): boolean =>
  status !== 'warm' && etaIsMeasured && etaMs !== null && etaMs > leftMs

/**
 * Jobs with a synchronous caller: each waits in the queue like any job, runs on its slot, and leaves one finished
 * record. If an engine fails before the caller has received a byte, the call is tried again, at most three times; an
 * engine that another request may have ended does not count.
 */
export function openCalls(dependencies: {
  fleet: Pick<Fleet, 'activity' | 'slots'>
  dispatch: Dispatch
  queue: Queue
  waiting: WaitingCalls
  recorder: Recorder
  durations: JobDurations
  suspects: Suspects
  used: (tokenId: string, usage: Usage) => void
  rankOf: (priority: number) => number
  spend?: JobSpend
  /** A call without a limit of its own is refused when its wait is expected to take longer, milliseconds. */
  holdMs: number
  log: Log
}) {
  const { fleet, dispatch, queue, waiting, recorder, durations, suspects } = dependencies
  const { used, rankOf, spend = noSpend, holdMs, log } = dependencies
  const running = new Map<string, RunningCall>()

  /** The maximum number of calls that may wait for the model: `max_queue`, plus the planned slots while it is not loaded. */
  function maxWaiting({ id, max_queue }: Model): number {
    const { ready, planned } = fleet.slots(id)
    return max_queue + (ready > 0 ? 0 : planned)
  }

  /**
   * Waits for a slot, for `waitMs`; if that is infinite, for as long as it is expected to wait less than `holdMs`.
   * Rejects with Failure `queue_full`, `model_warming_up`, `no_capacity`, or the caller's abort reason.
   */
  function wait(
    call: RunningCall,
    model: Model,
    { waitMs, prompt }: Pick<CallOptions, 'waitMs' | 'prompt'>,
  ): Promise<CallSlot> {
    const { id } = model
    const { organizationId } = call
    call.entry ??= { id: call.id, organizationId, modelId: id, class: 'interactive', rank: rankOf(0) }
    const job = call.entry
    return new Promise((resolve, reject) => {
      const since = waiting.now()
      let timer: NodeJS.Timeout | undefined
      const settled = (referenceStart: number | null = null) => {
        clearTimeout(timer)
        call.caller.removeEventListener('abort', onAbort)
        const waitedMs = waiting.now() - since
        call.queuedMs += waitedMs
        const begun = Number.isFinite(referenceStart)
        call.referenceQueuedMs += begun ? Math.max(0, referenceStart! - since) : waitedMs
        call.hasReference ||= begun
        call.waiting = undefined
      }
      const exact = Number.isFinite(waitMs)
      const entry: WaitingCall = {
        job,
        prompt,
        since,
        get deadline() {
          return exact ? since + waitMs : waiting.now() + holdMs
        },
        granted(slot) {
          settled(slot.entry.referenceStart)
          resolve(slot)
        },
        refused(failure) {
          settled()
          reject(failure)
        },
      }
      const withdraw = (why: unknown) => {
        if (!waiting.withdraw(entry)) return
        settled()
        reject(why)
        dispatch.check(id)
      }
      const refuseIfTooLong = () => {
        const leftMs = since + waitMs - waiting.now()
        const activity = fleet.activity(id)
        if (leftMs <= 0) withdraw(waitedTooLong(id, activity))
        else if (exact ? inVain(activity, leftMs) : (activity.etaMs ?? 0) > holdMs)
          withdraw(wouldWaitTooLong(id, activity, exact ? 'longer than this request waits' : undefined))
        else timer = setTimeout(refuseIfTooLong, Math.min(leftMs, expectEveryMs))
      }
      const onAbort = () => withdraw(call.caller.reason)
      // A call that has run before was admitted: only new ones can be too many.
      const full = call.startedAt === null && queue.waiting(id).interactive >= maxWaiting(model)
      call.waiting = entry
      waiting.add(entry)
      call.caller.addEventListener('abort', onAbort)
      // A call above the limit also counts as demand for a moment: with max_queue 0 it is what loads another engine.
      dispatch.check(id)
      if (full && call.waiting) withdraw(queueFull(id, queue.waiting(id).interactive - 1, fleet.activity(id)))
      else if (call.waiting) refuseIfTooLong()
    })
  }

  function record(call: RunningCall, { price }: Model, end: CallEnd, attempt: number): void {
    const { gpuMs, energyMj } = call
    const usage = meteredUsage({ ...(end.how === 'retry' ? noUsage : end.usage), gpuMs, energyMj })
    used(call.tokenId, usage)
    // Nobody pays for the time in which an engine failed.
    const billed = end.how === 'failed' ? { ...usage, gpuMs: 0 } : usage
    const failure = end.how === 'failed' ? end.failure : undefined
    const { id, task, modelId, engineId, organizationId, tokenId, createdAt, startedAt } = call
    if (failure?.engineText)
      log.warn('An engine failed a request', {
        job: id,
        model: modelId,
        engine: engineId,
        engine_error: failure.engineText,
      })
    const finished: FinishedJob = {
      id,
      task,
      modelId,
      createdAt,
      startedAt,
      referenceQueueMs: call.hasReference ? Math.round(call.referenceQueuedMs) : null,
      engineId,
      organizationId,
      tokenId,
      status: end.how === 'retry' ? 'failed' : end.how,
      error: failure ? jobErrorOf(failure, attempt) : null,
      usage,
      cost: metered(costOf(price, billed)),
      finishedAt: Date.now(),
    }
    recorder.record(finished)
    spend.settle(id, finished)
  }

  const ownCall = (organizationId: string, id: string): RunningCall | undefined => {
    const call = running.get(id)
    return call?.organizationId === organizationId ? call : undefined
  }

  return {
    /**
     * Runs a call to its end and records it. Rejects with the Failure that prevented it from running or that it failed
     * with. Calls that were refused before they had a slot used no compute, and are not recorded.
     */
    async run(
      options: CallOptions,
      attempt: CallAttempt,
    ): Promise<{ call: RunningCall; end: Extract<CallEnd, { how: 'completed' | 'cancelled' }> }> {
      const { admitted, createdAt, caller, withoutEngine = false } = options
      const { organizationId, tokenId, task, model } = admitted
      const id = newId('job')
      spend.hold(id, admitted.spender, admitted.hold)
      const call: RunningCall = {
        id,
        organizationId,
        tokenId,
        task,
        modelId: model.id,
        createdAt,
        startedAt: null,
        engineId: null,
        queuedMs: 0,
        referenceQueuedMs: 0,
        hasReference: false,
        gpuMs: 0,
        energyMj: 0,
        entry: undefined,
        waiting: undefined,
        ended: undefined,
        caller,
      }
      running.set(id, call)
      let end: CallEnd | undefined
      let attempts = 1
      // One function without helpers around the attempt: every request passes here, and each helper costs a promise.
      try {
        for (;;) {
          caller.throwIfAborted()
          let lease = withoutEngine
            ? noSlot(model.id)
            : suspects.runsAlone(id)
              ? undefined
              : dispatch.takeFree(model.id, options.prompt)
          let entry: RunningEntry | undefined
          if (!lease) {
            if (call.entry === undefined) options.waits?.(call)
            // The wait before an attempt that failed counts.
            const waitMs = Math.min(slotWaitMs(model), options.waitMs) - call.queuedMs
            const slot = await wait(call, model, { waitMs, prompt: options.prompt })
            lease = slot.lease
            entry = slot.entry
          }
          const since = performance.now()
          let outcome: CallEnd | undefined
          try {
            const first = call.startedAt === null
            call.startedAt ??= Date.now()
            call.engineId = withoutEngine ? null : lease.engineId
            if (first) options.began?.(call, lease)
            outcome = await attempt(lease, call)
          } finally {
            const ranMs = performance.now() - since
            const completed = outcome?.how === 'completed'
            if (completed && !withoutEngine) durations.ran(model.id, null, ranMs)
            // Before the slot is free, so that the choice of the next entry considers what this one has used.
            if (entry) queue.ran(entry, ranMs, completed)
            const { gpuMs, energyMj } = lease.used()
            call.gpuMs += gpuMs
            call.energyMj = call.energyMj === null || energyMj === null ? null : call.energyMj + energyMj
            lease.release()
          }
          const crash = 'failure' in outcome ? suspects.failed(id, outcome.failure, lease) : 'none'
          if (outcome.how !== 'retry') {
            end = outcome
            break
          }
          const isLast = outcome.failure.final || (crash !== 'beside' && attempts >= maxAttempts)
          if (isLast || caller.aborted) {
            end = { how: 'failed', failure: outcome.failure, usage: noUsage }
            break
          }
          log.warn('An engine failed before it answered; the request is tried again', {
            job: id,
            model: model.id,
            engine: call.engineId,
            attempt: attempts,
            reason: outcome.failure.message,
          })
          if (crash !== 'beside') attempts++
          // Behind those that wait: they are answered before another engine may end.
          if (crash === 'alone') call.entry = undefined
        }
        if (end.how === 'failed') throw end.failure
        return { call, end }
      } catch (thrown) {
        const failure = Failure.from(thrown)
        if (end?.how !== 'failed')
          end =
            failure.code === 'cancelled'
              ? { how: 'cancelled', usage: noUsage }
              : { how: 'failed', failure, usage: noUsage }
        throw failure
      } finally {
        if (call.startedAt !== null || end!.how === 'cancelled') record(call, model, end!, attempts)
        else spend.release(id)
        running.delete(id)
        suspects.ended(id)
        call.ended?.resolve()
      }
    },

    /** Why a call of the model waits, as a sentence, and for how much longer, milliseconds; null where it is not known. */
    reasonOf(modelId: string): { text: string | null; etaMs: number | null } {
      const { reason, etaMs } = fleet.activity(modelId)
      return { text: reason, etaMs }
    },

    /** When a request for the model that is refused now with this code should come again, for its failure. */
    whenToRetry: (modelId: string, code: FailureCode) => whenToRetry(code, fleet.activity(modelId)),

    /** Throws Failure `queue_full` if no more calls may wait for the model. Does not look for a free slot. */
    requireRoom(model: Model): void {
      const { interactive } = queue.waiting(model.id)
      if (interactive > 0 && interactive >= maxWaiting(model))
        throw queueFull(model.id, interactive, fleet.activity(model.id))
    },

    /** Resolves when the call of that id has ended and is recorded; undefined: the organization has no such call. */
    ended(organizationId: string, id: string): Promise<void> | undefined {
      const call = ownCall(organizationId, id)
      return call && (call.ended ??= Promise.withResolvers<void>()).promise
    },

    /** The record of a call that is not in the store: it waits, runs, or has ended and is being written. */
    find(organizationId: string, id: string): JobRecord | undefined {
      const ended = recorder.find(organizationId, id)
      if (ended) return callRecord(ended)
      const call = ownCall(organizationId, id)
      return call && runningRecord(call)
    },

    /**
     * Cancels a call and resolves with its record once it has ended. Undefined: the organization has no such call.
     * Throws Failure `job_already_finished`.
     */
    async cancel(organizationId: string, id: string): Promise<JobRecord | undefined> {
      const call = ownCall(organizationId, id)
      if (call) {
        const ended = this.ended(organizationId, id)
        call.caller.abort(new Failure('cancelled', `The job ${id} was cancelled.`))
        await ended
      }
      const ended = this.find(organizationId, id)
      if (!ended || ended.status === 'cancelled') return ended
      throw new Failure('job_already_finished', `The job ${id} has already ended: it is ${ended.status}.`)
    },

    /** How many calls of the organization wait or run. Scans all calls. */
    runningOf(organizationId: string): number {
      let count = 0
      for (const call of running.values()) if (call.organizationId === organizationId) count++
      return count
    },

    /** Aborts all calls of the organization for this reason. Returns how many; each is recorded when it has ended. */
    cancelAll(organizationId: string, why: Failure): number {
      const own = [...running.values()].filter(call => call.organizationId === organizationId)
      for (const { caller } of own) caller.abort(why)
      return own.length
    },

    /** The calls that wait for a slot, unordered, each with its waiting time in milliseconds. */
    *waiting(): Iterable<{ job: JobRecord; waitedMs: number }> {
      for (const call of running.values())
        if (call.waiting) yield { job: runningRecord(call), waitedMs: waiting.waitedMs(call.waiting) }
    },
  }
}
