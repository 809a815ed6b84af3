import type { JobSpend } from '../admission/spend.ts'
import { tokenIdsOf } from '../admission/spender.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Lease } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import type { FinishedJob } from '../store/store.ts'
import { noUsage } from '../usage.ts'
import { type CallAttempt, type CallEnd, type CallOptions, newCall, type RunningCall } from './call.ts'
import { finishedCall, logEngineText } from './finished-call.ts'
import { type EngineEnd, engineEndOf } from './suspects.ts'

/** Why a call waits, as a sentence, and for how much longer, milliseconds; null where it is not known. */
export interface WaitReason {
  text: string | null
  etaMs: number | null
}

/** Thrown for a request that the control process must answer. It is never shown. */
export const passOn: Failure = new Failure('no_capacity', 'The control process answers this request.')

/**
 * The calls of a gateway process: each takes a slot that control has granted or waits for one, runs once and leaves a record.
 * One whose model only control can serve, whose cost does not fit what is granted, or whose engine fails before it has
 * answered, is thrown as `passOn`.
 */
export function openFrontCalls({
  take,
  wait,
  reasonOf,
  ran,
  record,
  passedOn,
  spend,
  used,
  log,
}: {
  /** Takes a granted slot that is free. */
  take: (modelId: string) => Lease | undefined
  /**
   * Waits for a slot in the queue of control, and sets how long that took. Rejects with the Failure that refuses the call,
   * with the reason of an abort, and with `passOn`. `prompt`: the body that the engine gets.
   */
  wait: (call: RunningCall, model: Model, prompt: CallOptions['prompt']) => Promise<Lease>
  /** Why calls of the model wait, as far as control has told. */
  reasonOf: (modelId: string) => WaitReason
  /** Called when a call that has waited has ended, before its slot is free. `completed`: its duration is typical. */
  ran: (id: string, ms: number, completed: boolean) => void
  /** Called with what has ended, and the accounts of its token (see `tokenIdsOf`). */
  record: (finished: FinishedJob, tokenIds: readonly string[]) => void
  /** Called with the id of a call that has begun here and that control answers instead: it leaves no record here. */
  passedOn: (id: string) => void
  /** Holds what calls may cost. What it throws is for control to decide. */
  spend: Pick<JobSpend, 'hold' | 'release' | 'settle'>
  /** Counts the tokens of models that a token has used. */
  used: (tokenId: string, tokens: number) => void
  log: Log
}) {
  const running = new Map<string, RunningCall>()
  /** Failures of calls that are recorded, so that nobody else may try them. */
  const recorded = new WeakSet<Failure>()
  /** By what is thrown for calls that control tries again. */
  const engineEnds = new WeakMap<Failure, EngineEnd>()

  /** Rejects with `passOn` if control answers the call, else with a failure that is answered here. */
  async function waited(call: RunningCall, options: CallOptions): Promise<Lease> {
    const { model } = options.admitted
    const waitEnded = options.waits?.(call)
    try {
      return await wait(call, model, options.prompt)
    } catch (thrown) {
      const failure = Failure.from(thrown)
      if (failure === passOn) spend.release(call.id)
      else {
        recorded.add(failure)
        if (failure.code === 'cancelled') ends(call, options, { how: 'cancelled', usage: noUsage })
        // It used no compute, and leaves no record.
        else {
          spend.release(call.id)
          passedOn(call.id)
        }
      }
      throw failure
    } finally {
      waitEnded?.()
    }
  }

  function ends(call: RunningCall, options: CallOptions, end: CallEnd): void {
    if (end.how === 'failed') {
      recorded.add(end.failure)
      logEngineText(log, call, end.failure)
    }
    const { model, spender } = options.admitted
    const finished = finishedCall(call, model, end, 1)
    used(finished.tokenId, finished.usage.inputTokens + finished.usage.outputTokens)
    spend.settle(call.id, finished)
    record(finished, tokenIdsOf(spender.originId, spender.parents))
  }

  /** What is thrown for a call whose engine failed before it answered: control tries it again, under another id, and records it. */
  function again(
    { id, modelId, engineId, traceparent }: RunningCall,
    failure: Failure,
    engineEnd?: EngineEnd,
  ): Failure {
    spend.release(id)
    passedOn(id)
    const facts = { model: modelId, engine: engineId, reason: failure.message, traceparent }
    log.warn('An engine failed before it answered; the request is tried again', facts)
    if (!engineEnd) return passOn
    const thrown = passOn.with({})
    engineEnds.set(thrown, engineEnd)
    return thrown
  }

  return {
    async run(
      options: CallOptions,
      attempt: CallAttempt,
    ): Promise<{ call: RunningCall; end: Extract<CallEnd, { how: 'completed' | 'cancelled' }> }> {
      const { admitted, caller, traceparent } = options
      if (options.withoutEngine || options.fallbacks) throw passOn
      const call = newCall(options)
      spend.hold(call.id, admitted.spender, admitted.hold)
      running.set(call.id, call)
      let lease = take(admitted.model.id)
      const asked = lease === undefined
      try {
        lease ??= await waited(call, options)
      } catch (thrown) {
        running.delete(call.id)
        throw thrown
      }
      lease.organizationId = call.organizationId
      lease.traceparent = traceparent
      call.startedAt = Date.now()
      call.engineId = lease.engineId
      const since = performance.now()
      let end: CallEnd
      let completed = false
      let thrown: Failure | undefined
      try {
        options.began?.(call, lease)
        end = await attempt(lease, call)
        completed = end.how === 'completed'
      } catch (cause) {
        thrown = Failure.from(cause)
        const how = thrown.code === 'cancelled' ? 'cancelled' : 'failed'
        end = { how, failure: thrown, usage: noUsage }
      } finally {
        const { gpuMs, energyMj } = lease.used()
        call.gpuMs += gpuMs
        call.energyMj = energyMj
        if (asked) ran(call.id, performance.now() - since, completed)
        lease.release()
        running.delete(call.id)
      }
      if (end.how === 'retry') {
        if (!caller.aborted) throw again(call, end.failure, engineEndOf(end.failure, lease, performance.now() - since))
        end = { how: 'failed', failure: end.failure, usage: noUsage }
      }
      ends(call, options, end)
      if (thrown) throw thrown
      if (end.how === 'failed') throw end.failure
      return { call, end }
    },

    /** Why calls of the model wait, as a sentence, and for how much longer, milliseconds; null where it is not known. */
    reasonOf,

    /** How the engine ended under a call that control tries again, by what was thrown. */
    engineEndOf: (thrown: unknown): EngineEnd | undefined => engineEnds.get(thrown as Failure),

    /** Whether this process must answer with the failure itself. */
    isRecorded: (thrown: unknown): boolean => thrown instanceof Failure && recorded.has(thrown),

    /** Ends calls with this reason; each is recorded when it has ended. */
    cancel(ids: readonly string[], reason: Failure): void {
      recorded.add(reason)
      for (const id of ids) running.get(id)?.caller.abort(reason)
    },

    running: (): Iterable<RunningCall> => running.values(),
  }
}
export type FrontCalls = ReturnType<typeof openFrontCalls>
