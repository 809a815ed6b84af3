import type { Failure } from '../failure.ts'
import type { Lease } from '../models/fleet.ts'
import type { WaitingJob } from '../store/store.ts'
import type { Queue, RunningEntry } from './queue.ts'

/** A slot that was given to a call that waited; the turn is ended with the slot. */
export interface CallSlot {
  lease: Lease
  turn: RunningEntry
}

/** A call in the queue. Times are monotonic milliseconds. */
export interface WaitingCall {
  readonly job: WaitingJob
  readonly since: number
  readonly deadline: number
  granted(slot: CallSlot): void
  refused(failure: Failure): void
}

/** The calls in the queue, by id. Each leaves it once: with a slot, with a refusal, or withdrawn by its caller. */
export function openWaitingCalls({ queue, now = () => performance.now() }: { queue: Queue; now?: () => number }) {
  const models = new Map<string, Map<string, WaitingCall>>()
  const calls = new Map<string, WaitingCall>()

  function forget({ job }: WaitingCall): void {
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
    /** Its turn has come; the queue has taken it out already. */
    grant(call: WaitingCall, slot: CallSlot): void {
      forget(call)
      call.granted(slot)
    },
    /** Takes the call out of the queue; false where it does not wait any more. */
    withdraw(call: WaitingCall): boolean {
      if (calls.get(call.job.id) !== call) return false
      forget(call)
      queue.remove(call.job)
      return true
    },
    /** Refuses the calls of a model whose time ends within so many milliseconds. */
    refuse(modelId: string, failure: () => Failure, withinMs: number): void {
      const before = now() + withinMs
      const calls = Array.from(models.get(modelId)?.values() ?? []).filter(({ deadline }) => deadline <= before)
      for (const call of calls) if (this.withdraw(call)) call.refused(failure())
    },
  }
}
export type WaitingCalls = ReturnType<typeof openWaitingCalls>
