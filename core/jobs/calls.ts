import { type JobSpend, noSpend } from '../admission/spend.ts'
import { withoutLimits } from '../admission/spender.ts'
import { Failure, type FailureCode } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Fleet } from '../models/fleet.ts'
import { type Model, slotWaitMs } from '../models/model.ts'
import { callRecord, type JobRecord, type Usage } from '../store/store.ts'
import { SwapSet } from '../swap-set.ts'
import { noUsage } from '../usage.ts'
import {
  type CallAttempt,
  type CallEnd,
  type CallFallbacks,
  type CallOptions,
  type CallsElsewhere,
  newCall,
  nowhere,
  type RunningCall,
  runningRecord,
  type Substitute,
} from './call.ts'
import { openCallWait, refusalOf } from './call-wait.ts'
import type { Dispatch } from './dispatch.ts'
import { finishedCall, logEngineText } from './finished-call.ts'
import type { JobDurations } from './job-durations.ts'
import { noSlot } from './no-slot.ts'
import type { Queue, RunningEntry } from './queue.ts'
import type { Recorder } from './recorder.ts'
import { engineEndOf, type Suspects } from './suspects.ts'
import { queueFull, type WaitingCalls, whenToRetry } from './waiting-calls.ts'

const maxAttempts = 3
/**
 * Jobs with a synchronous caller: each waits in the queue like any job, runs on its slot, and leaves one finished
 * record. If an engine fails before the caller has received a byte, the call is tried again, at most three times; an
 * engine that another request may have ended, or that has not got it, does not count.
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
  /** Calls that run in other processes; absent: none. */
  elsewhere?: CallsElsewhere | undefined
  /** Throws a Failure if the model may not do work of the token any more: it may have waited for long. */
  mayBegin?: ((model: Model, tokenId: string) => void) | undefined
  log: Log
}) {
  const { fleet, dispatch, queue, waiting, recorder, durations, suspects } = dependencies
  const { used, spend = noSpend, elsewhere = nowhere, mayBegin, log } = dependencies
  const { maxWaiting, wait } = openCallWait(dependencies)
  const running = new SwapSet<RunningCall>()

  function record(call: RunningCall, model: Model, end: CallEnd, attempt: number): void {
    const finished = finishedCall(call, model, end, attempt)
    used(call.tokenId, finished.usage)
    if (end.how === 'failed') logEngineText(log, call, end.failure)
    recorder.record(finished)
    spend.settle(call.id, finished)
  }

  /**
   * Gives the call to another model: its hold is that of this model from now on. Undefined, and nothing changes, if it may cost
   * more than is left of the limit of the fallback.
   */
  function substituted(call: RunningCall, before: Model, failure: Failure, substitute: Substitute) {
    const { admitted, attempt, reason, spendLimit } = substitute
    const { model, hold } = admitted
    const spender = { ...admitted.spender, fallback: { modelId: model.id, limit: spendLimit } }
    // Other calls may have used the rest of the limit meanwhile.
    if (!spend.mayFallBack(spender, hold)) return undefined
    const facts = { job: call.id, from: before.id, model: model.id, reason, traceparent: call.traceparent }
    log.warn('A fallback answers a request', { ...facts, failure: failure.message })
    spend.release(call.id)
    // It was admitted already: what others hold since then does not end it.
    spend.hold(call.id, withoutLimits(spender), hold)
    call.requestedModel ??= before.id
    call.fallbackReason = reason
    call.modelId = model.id
    call.unbilledGpuMs = call.gpuMs
    call.entry = undefined
    return { model, attempt, spender }
  }

  /** Gives the call to the next fallback that may do it; undefined if none may. `waited`: see `CallFallbacks`. */
  async function moveOn(call: RunningCall, model: Model, fallbacks: CallFallbacks, failure: Failure, waited: boolean) {
    for (;;) {
      const substitute = await fallbacks.next(failure, waited)
      if (!substitute) return undefined
      const moved = substituted(call, model, failure, substitute)
      if (!moved) continue
      const { spender, ...substituting } = moved
      await spend.storeHold(call.id, spender, substitute.admitted.hold)
      return substituting
    }
  }

  const ownCall = (organizationId: string, id: string): RunningCall | undefined =>
    running.find(call => call.id === id && call.organizationId === organizationId)

  return {
    /**
     * Runs a call to its end and records it. Rejects with the Failure that prevented it from running or that it failed
     * with. Calls that were refused before they had a slot used no compute, and are not recorded.
     */
    async run(
      options: CallOptions,
      firstAttempt: CallAttempt,
    ): Promise<{ call: RunningCall; end: Extract<CallEnd, { how: 'completed' | 'cancelled' }> }> {
      const { admitted, caller, withoutEngine = false } = options
      const { organizationId } = admitted
      let { model } = admitted
      let { fallbacks } = options
      let attempt = firstAttempt
      /** The model that has begun it. */
      let begun: Model | undefined
      const call = newCall(options)
      const { id } = call
      spend.hold(id, admitted.spender, admitted.hold)
      running.add(call)
      let end: CallEnd | undefined
      let attempts = suspects.failed(id, options.engineEnd) === 'alone' ? 2 : 1
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
            const waitEnded = options.waits?.(call)
            // The wait before an attempt that failed counts.
            const waitMs = Math.min(slotWaitMs(model), options.waitMs) - call.queuedMs
            const wanted = { model, waitMs, prompt: options.prompt, fallbacks, isNew: begun !== model }
            let slot: Awaited<ReturnType<typeof wait>> | ReturnType<typeof refusalOf>
            try {
              slot = await wait(call, wanted)
            } catch (thrown) {
              if (!fallbacks) throw thrown
              slot = refusalOf(thrown, caller)
            } finally {
              waitEnded?.()
            }
            if ('refused' in slot) {
              const moved = await moveOn(call, model, fallbacks!, slot.refused, slot.waited)
              if (moved) ({ model, attempt } = moved)
              // It waits on as a call without fallbacks.
              else if (slot.waited) fallbacks = undefined
              else throw slot.refused
              continue
            }
            lease = slot.lease
            entry = slot.entry
          }
          lease.organizationId = organizationId
          lease.traceparent = options.traceparent
          const since = performance.now()
          let outcome: CallEnd | undefined
          let ranMs = 0
          try {
            // One that neither waited nor was tried before was admitted just now.
            if (entry || begun) mayBegin?.(model, admitted.tokenId)
            const first = begun !== model
            begun = model
            call.startedAt ??= Date.now()
            call.engineId = withoutEngine ? null : lease.engineId
            if (first) options.began?.(call, lease)
            outcome = await attempt(lease, call)
          } finally {
            ranMs = performance.now() - since
            const completed = outcome?.how === 'completed'
            if (completed && !withoutEngine) durations.ran(model.id, null, ranMs)
            // Before the slot is free, so that the choice of the next entry considers what this one has used.
            if (entry) {
              queue.ran(entry, ranMs, completed)
              dispatch.suspectLeft(model.id, id)
            }
            const { gpuMs, energyMj } = lease.used()
            call.gpuMs += gpuMs
            call.energyMj = call.energyMj === null || energyMj === null ? null : call.energyMj + energyMj
            lease.release()
          }
          const crash = 'failure' in outcome ? suspects.failed(id, engineEndOf(outcome.failure, lease, ranMs)) : 'none'
          const isFree = crash === 'beside' || ('failure' in outcome && outcome.failure.unsent)
          const isLast = outcome.how === 'retry' && (outcome.failure.final || (!isFree && attempts >= maxAttempts))
          if (fallbacks && 'failure' in outcome && (isLast || outcome.how === 'failed') && !caller.aborted) {
            const moved = await moveOn(call, model, fallbacks, outcome.failure, false)
            if (moved) {
              ;({ model, attempt } = moved)
              attempts = 1
              continue
            }
          }
          if (outcome.how !== 'retry') {
            end = outcome
            break
          }
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
            traceparent: options.traceparent,
          })
          if (!isFree) attempts++
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
        running.delete(call)
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
      if (!call) return elsewhere.ended(organizationId, id)
      return (call.ended ??= Promise.withResolvers<void>()).promise
    },

    /**
     * Resolves when all calls in other processes that began before are known here; undefined without such processes. Call it
     * before you say that there is no call.
     */
    known: (): Promise<void> | undefined => elsewhere.known(),

    /** How many requests are being answered in other processes, as of `known`. */
    openElsewhere: (): number => elsewhere.open(),

    /** The record of a call that is not in the store: it waits, runs, or has ended and is being written. */
    find(organizationId: string, id: string): JobRecord | undefined {
      const ended = recorder.find(organizationId, id)
      if (ended) return callRecord(ended)
      const call = ownCall(organizationId, id)
      return call ? runningRecord(call) : elsewhere.find(organizationId, id)
    },

    /**
     * Cancels a call and resolves with its record once it has ended. Undefined: the organization has no such call.
     * Throws Failure `job_already_finished`.
     */
    async cancel(organizationId: string, id: string): Promise<JobRecord | undefined> {
      const reason = new Failure('cancelled', `The job ${id} was cancelled.`)
      if (!this.find(organizationId, id)) await elsewhere.known()
      const end = this.ended(organizationId, id)
      if (end) {
        const call = ownCall(organizationId, id)
        if (call) call.caller.abort(reason)
        else elsewhere.cancel(organizationId, id, reason)
        await end
      }
      const ended = this.find(organizationId, id)
      if (!ended || ended.status === 'cancelled') return ended
      throw new Failure('job_already_finished', `The job ${id} has already ended: it is ${ended.status}.`)
    },

    /** How many calls of the organization wait or run. Scans all calls. */
    runningOf(organizationId: string): number {
      let count = elsewhere.runningOf(organizationId)
      for (const call of running) if (call.organizationId === organizationId) count++
      return count
    },

    /** Aborts all calls of the organization for this reason. Returns how many; each is recorded when it has ended. */
    cancelAll(organizationId: string, why: Failure): number {
      const own = [...running].filter(call => call.organizationId === organizationId)
      for (const { caller } of own) caller.abort(why)
      return own.length + elsewhere.cancelAll(organizationId, why)
    },

    /** The calls that wait for a slot, unordered, each with its waiting time in milliseconds. */
    *waiting(): Iterable<{ job: JobRecord; waitedMs: number }> {
      for (const call of running)
        if (call.waiting) yield { job: runningRecord(call), waitedMs: waiting.waitedMs(call.waiting) }
      yield* elsewhere.waiting()
    },
  }
}
