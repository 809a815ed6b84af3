import { Failure, type FailureCode, retryAfter } from '../failure.ts'
import type { Lease, ModelActivity } from '../models/fleet.ts'
import type { WaitingJob } from '../store/store.ts'
import { about, pendingText } from './job-progress.ts'
import type { Queue, RunningEntry } from './queue.ts'

/** The slot of a call that waited; the running entry ends with the slot. */
export interface CallSlot {
  lease: Lease
  entry: RunningEntry
}

/** A call in the queue. Times are monotonic milliseconds. */
export interface WaitingCall {
  readonly job: WaitingJob
  readonly since: number
  readonly deadline: number
  /** The body that the engine gets, of a text. */
  readonly prompt?: string | Uint8Array | undefined
  granted(slot: CallSlot): void
  refused(failure: Failure): void
}

/** The calls in the queue, by id. Each leaves it once: with a slot, with a refusal, or withdrawn by its caller. */
export function openWaitingCalls({ queue, now = () => performance.now() }: { queue: Queue; now?: () => number }) {
  const models = new Map<string, Map<string, WaitingCall>>()
  const calls = new Map<string, WaitingCall>()

  function remove({ job }: WaitingCall): void {
    calls.delete(job.id)
    const own = models.get(job.modelId)
    own?.delete(job.id)
    if (own?.size === 0) models.delete(job.modelId)
  }

  return {
    now,
    add(call: WaitingCall): void {
      calls.set(call.job.id, call)
      const own = models.get(call.job.modelId) ?? new Map<string, WaitingCall>()
      models.set(call.job.modelId, own.set(call.job.id, call))
      queue.offer(call.job)
    },
    find: (id: string): WaitingCall | undefined => calls.get(id),
    waitedMs: ({ since }: WaitingCall): number => now() - since,
    /** Gives the call its slot; the queue has removed it already. */
    grant(call: WaitingCall, slot: CallSlot): void {
      remove(call)
      call.granted(slot)
    },
    /** Removes the call from the queue; false if it is not waiting. */
    withdraw(call: WaitingCall): boolean {
      if (calls.get(call.job.id) !== call) return false
      remove(call)
      queue.remove(call.job)
      return true
    },
    /** Refuses the calls of a model whose wait ends within `withinMs`, and that have waited for `waitedMs`. */
    refuse(modelId: string, failure: () => Failure, withinMs: number, waitedMs = 0): void {
      const before = now() + withinMs
      const by = now() - waitedMs
      const calls = Array.from(models.get(modelId)?.values() ?? []).filter(
        ({ deadline, since }) => deadline <= before && since <= by,
      )
      for (const call of calls) if (this.withdraw(call)) call.refused(failure())
    },
  }
}
export type WaitingCalls = ReturnType<typeof openWaitingCalls>

/** The failure of a call when the queue of its model is full. */
export const queueFull = (modelId: string, waiting: number, { etaMs }: ModelActivity): Failure =>
  new Failure('queue_full', `${waiting} requests already wait for '${modelId}', which is the limit (max_queue).`, {
    retryAfterMs: retryAfter(etaMs),
  })

/** When the callers of a model come again of whose load nothing is known, milliseconds. */
export const unknownLoadMs = 30_000

/** When a caller that is refused should come again, and when the model should be ready, for its failure. */
export function whenToRetry(
  code: FailureCode,
  { etaMs, retryMs, etaIsMeasured }: Pick<ModelActivity, 'etaMs' | 'retryMs' | 'etaIsMeasured'>,
) {
  const isUnknown = code === 'model_warming_up' && !etaIsMeasured
  const least = isUnknown ? unknownLoadMs : 0
  return {
    retryAfterMs: retryAfter(isUnknown ? unknownLoadMs : retryMs),
    facts: { eta_seconds: etaMs === null ? null : Math.ceil(Math.max(least, etaMs) / 1000) },
  }
}

/** The failure of a call that waited for a slot until its limit. */
export function waitedTooLong(modelId: string, activity: ModelActivity): Failure {
  const { status, reason, pending, etaMs } = activity
  const name = `'${modelId}'`
  const failure = (code: FailureCode, text: string) => new Failure(code, text, whenToRetry(code, activity))
  if (pending !== undefined) return failure('model_warming_up', pendingText(name, pending))
  if (status === 'loading') return failure('model_warming_up', `Model ${name} is still loading${inTime(etaMs)}.`)
  if (status === 'warm')
    return failure('no_capacity', `All slots of ${name} are busy; none became free in time${inTime(etaMs)}.`)
  return failure('no_capacity', reason ?? `Model ${name} could not be loaded in time.`)
}

/** The failure of a call that is expected to wait longer than it may, which `limit` says. */
export function wouldWaitTooLong(
  modelId: string,
  activity: ModelActivity,
  limit = 'longer than requests are held (limits.hold_max)',
): Failure {
  const { status, reason, etaMs, paused } = activity
  const text = `A slot of '${modelId}' should be free in ${about(etaMs ?? 0)}, ${limit}.${reason ? ` ${reason}` : ''}`
  const code = status === 'warm' || paused ? 'no_capacity' : 'model_warming_up'
  return new Failure(code, text, whenToRetry(code, activity))
}

const inTime = (ms: number | null): string => (ms === null ? '' : `; it should take ${about(ms)}`)
