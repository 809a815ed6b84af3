import { Failure } from '../../core/failure.ts'
import type { RunningCall } from '../../core/jobs/call.ts'
import type { Jobs } from '../../core/jobs/jobs.ts'
import type { RequestedSlot, SlotRequest, SlotRequests } from '../../core/jobs/slot-requests.ts'
import type { Model } from '../../core/models/model.ts'
import type { SlotGrants } from '../../core/models/slot-grants.ts'
import type { Task } from '../../core/schemas/task.ts'
import { sendable } from '../../core/store/sqlite/sent-failure.ts'
import type { Timings } from '../metrics/timings.ts'
import type { LentSlot, ToFront } from './messages.ts'

const withdrawn = new Failure('cancelled', 'The request was cancelled.')
/** After this time a call that waits is worth a word about the reason, milliseconds. */
const longMs = 1_000

export interface LentSlotsOptions {
  slotRequests: SlotRequests
  calls: Pick<Jobs['calls'], 'reasonOf'>
  grants: Pick<SlotGrants, 'mayLend' | 'lend'>
  /** A model as it is configured now; undefined if it is not offered. */
  find: (modelId: string) => Model | undefined
  /** Throws the failure of a model that this machine cannot run. */
  requireMachine: (model: Model, task: Task) => void
  timings: Pick<Timings, 'waited'>
}

/** What the calls of one front need of it. */
interface Listener {
  send: (message: ToFront) => void
  /** The call has got a slot, which the front has from now on. */
  lent(engineId: string, keeps: boolean): void
  /** The call gets no slot: it is no call of the front any more. */
  refused(id: string): void
  /** Whether the front begins no further calls: a slot that it kept would lie idle. */
  isLeaving: () => boolean
}

/** The calls of one front that want slots: they wait in control's queue, and run in the front. */
export function openLentSlots(options: LentSlotsOptions, listener: Listener) {
  const { slotRequests, calls, grants, find, requireMachine, timings } = options
  const waiting = new Map<string, { call: RunningCall; since: number }>()
  /** Of calls that run. */
  const running = new Map<string, { call: RunningCall; slot: Pick<RequestedSlot, 'entry'>; since: number }>()
  let slots: LentSlot[] = []
  let refusals: Extract<ToFront, { kind: 'refused' }>['refusals'] = []

  /** Everything that one turn brings is one message. */
  function soon(): void {
    if (slots.length + refusals.length > 1) return
    queueMicrotask(() => {
      if (slots.length > 0) listener.send({ kind: 'slots', slots })
      if (refusals.length > 0) listener.send({ kind: 'refused', refusals })
      slots = []
      refusals = []
    })
  }

  function refuse(call: RunningCall, failure: Failure | null): void {
    refusals.push({ id: call.id, failure: failure && sendable(failure) })
    soon()
    listener.refused(call.id)
  }

  function begin(call: RunningCall, slot: RequestedSlot): void {
    const { id, modelId, queuedMs, referenceQueuedMs, hasReference } = call
    const { lease, entry } = slot
    const { loadedMs } = lease
    const given = call.caller.aborted ? undefined : grants.lend(lease)
    if (!given) {
      slotRequests.ran(modelId, slot, 0, false)
      lease.release()
      if (!call.caller.aborted) refuse(call, null)
      return
    }
    const { engineId } = given.engine
    const keeps = given.keeps && !listener.isLeaving()
    call.startedAt = Date.now()
    call.engineId = engineId
    if (queuedMs > 0) timings.waited(modelId, queuedMs, referenceQueuedMs)
    running.set(id, { call, slot: { entry }, since: performance.now() })
    slots.push({ id, ...given, keeps, queuedMs, referenceQueuedMs, hasReference, loadedMs })
    soon()
    listener.lent(engineId, keeps)
  }

  async function take(call: RunningCall, prompt: SlotRequest['prompt']): Promise<void> {
    waiting.set(call.id, { call, since: performance.now() })
    try {
      const model = find(call.modelId)
      if (!model || !grants.mayLend(model)) return refuse(call, null)
      requireMachine(model, call.task)
      begin(call, await slotRequests.take(call, prompt))
    } catch (thrown) {
      if (!call.caller.aborted) refuse(call, Failure.from(thrown))
    } finally {
      waiting.delete(call.id)
    }
  }

  return {
    /** The call wants a slot. */
    want: (call: RunningCall, prompt: SlotRequest['prompt']): void => void take(call, prompt),
    /** The call wants none any more. */
    withdraw: (id: string): void => waiting.get(id)?.call.caller.abort(withdrawn),
    /** The call has ended. Its slot comes back by itself. */
    ran(id: string, ms: number, completed: boolean): void {
      const one = running.get(id)
      running.delete(id)
      if (one) slotRequests.ran(one.call.modelId, one.slot, ms, completed)
    },
    /** The calls that wait, with their waiting times in milliseconds. */
    *waiting(): Iterable<{ call: RunningCall; waitedMs: number }> {
      const now = performance.now()
      for (const { call, since } of waiting.values()) yield { call, waitedMs: now - since }
    },
    /** Tells the front why its calls wait, for their clients. Call it every second. */
    tellReasons(): void {
      const before = performance.now() - longMs
      const models = new Set(
        [...waiting.values()].filter(({ since }) => since <= before).map(({ call }) => call.modelId),
      )
      const reasons = [...models].map(modelId => ({ modelId, ...calls.reasonOf(modelId) }))
      if (reasons.length > 0) listener.send({ kind: 'waiting', reasons })
    },
    /** The front has ended: nothing of it waits any more. */
    close(): void {
      for (const { call } of waiting.values()) call.caller.abort(withdrawn)
      for (const { call, slot, since } of running.values())
        slotRequests.ran(call.modelId, slot, performance.now() - since, false)
      running.clear()
    },
  }
}
export type LentSlots = ReturnType<typeof openLentSlots>
