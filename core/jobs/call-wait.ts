import { Failure } from '../failure.ts'
import type { Fleet, ModelActivity } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import type { CallFallbacks, RunningCall } from './call.ts'
import type { Dispatch } from './dispatch.ts'
import type { Queue } from './queue.ts'
import {
  type CallSlot,
  queueFull,
  type WaitingCall,
  type WaitingCalls,
  waitedTooLong,
  wouldWaitTooLong,
} from './waiting-calls.ts'

/** A call with fallbacks left the queue of a model that could serve it later. */
class WaitTooLong {
  readonly failure: Failure
  constructor(failure: Failure) {
    this.failure = failure
  }
}

/** How often a call that is held is asked whether its wait has become too long, milliseconds. */
const expectEveryMs = 10_000

/** Whether a call would wait for a load that will not end in time. Of busy slots nobody knows, and of a first load. */
const inVain = ({ status, etaMs, etaIsMeasured }: ModelActivity, leftMs: number): boolean =>
  status !== 'warm' && etaIsMeasured && etaMs !== null && etaMs > leftMs

/** What kept a call with fallbacks from a slot; `waited`: it may wait on. Throws what is no refusal by the model. */
export function refusalOf(thrown: unknown, caller: AbortSignalLike): { refused: Failure; waited: boolean } {
  if (caller.aborted) throw thrown
  if (thrown instanceof WaitTooLong) return { refused: thrown.failure, waited: true }
  if (thrown instanceof Failure) return { refused: thrown, waited: false }
  throw thrown
}
type AbortSignalLike = Pick<RunningCall['caller'], 'aborted'>

/** The slot that a call waits for. */
interface WantedSlot {
  model: Model
  /** Milliseconds; infinite for as long as the wait is expected to end in time. */
  waitMs: number
  /** The body that the engine gets, of a text. */
  prompt?: string | Uint8Array | undefined
  fallbacks?: CallFallbacks | undefined
  /** Whether the model has not begun the call yet. */
  isNew: boolean
}

/** Waits of calls for slots. */
export function openCallWait(dependencies: {
  fleet: Pick<Fleet, 'activity' | 'slots'>
  dispatch: Pick<Dispatch, 'check'>
  queue: Pick<Queue, 'waiting' | 'load'>
  waiting: WaitingCalls
  rankOf: (priority: number) => number
  /** A call without a limit of its own is refused when its wait is expected to take longer, milliseconds. */
  holdMs: number
}) {
  const { fleet, dispatch, queue, waiting, rankOf, holdMs } = dependencies

  /** The maximum number of calls that may wait for the model: `max_queue`, plus the planned slots while it is not loaded. */
  function maxWaiting({ id, max_queue }: Model): number {
    const { ready, planned } = fleet.slots(id)
    return max_queue + (ready > 0 ? 0 : planned)
  }

  /** Expected milliseconds until a new call begins; null where nobody knows. */
  function expectedMs(modelId: string, { status, etaMs }: ModelActivity): number | null {
    if (status !== 'warm') return etaMs
    const { workMs } = queue.load(modelId, { jobs: false })
    return workMs === null ? null : workMs / Math.max(1, fleet.slots(modelId).ready)
  }

  /**
   * Waits for a slot, for `waitMs`; if that is infinite, for as long as it is expected to wait less than `holdMs`. With
   * fallbacks, only for as long as they say. Rejects with Failure `queue_full`, `model_warming_up`, `no_capacity`, or the
   * caller's abort reason; with a WaitTooLong if the model could serve later.
   */
  function wait(call: RunningCall, wanted: WantedSlot): Promise<CallSlot> {
    const { model, prompt, fallbacks, isNew } = wanted
    const { id } = model
    const waitMs = fallbacks ? Math.min(wanted.waitMs, fallbacks.waitMs) : wanted.waitMs
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
          if (fallbacks?.whenFailed) return waiting.now()
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
        reject(fallbacks && why instanceof Failure && why !== call.caller.reason ? new WaitTooLong(why) : why)
        dispatch.check(id)
      }
      const refuseIfTooLong = () => {
        const leftMs = since + waitMs - waiting.now()
        const activity = fleet.activity(id)
        if (leftMs <= 0) withdraw(waitedTooLong(id, activity))
        else if (fallbacks && (expectedMs(id, activity) ?? 0) > leftMs)
          withdraw(wouldWaitTooLong(id, activity, 'longer than its fallbacks allow'))
        else if (exact ? inVain(activity, leftMs) : (activity.etaMs ?? 0) > holdMs)
          withdraw(wouldWaitTooLong(id, activity, exact ? 'longer than this request waits' : undefined))
        else timer = setTimeout(refuseIfTooLong, Math.min(leftMs, expectEveryMs))
      }
      const onAbort = () => withdraw(call.caller.reason)
      // A call that the model has run before was admitted: only new ones can be too many.
      const full = isNew && queue.waiting(id).interactive >= maxWaiting(model)
      call.waiting = entry
      waiting.add(entry)
      call.caller.addEventListener('abort', onAbort)
      // A call above the limit also counts as demand for a moment: with max_queue 0 it is what loads another engine.
      dispatch.check(id)
      if (full && call.waiting) withdraw(queueFull(id, queue.waiting(id).interactive - 1, fleet.activity(id)))
      else if (call.waiting) refuseIfTooLong()
    })
  }

  return { maxWaiting, wait }
}
