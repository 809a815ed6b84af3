import { AbortSource } from '../abort-source.ts'
import { Failure } from '../failure.ts'
import { pick } from '../members.ts'
import type { Lease } from '../models/fleet.ts'
import { type Model, slotWaitMs } from '../models/model.ts'
import type { RunningCall } from './call.ts'
import type { openCallWait } from './call-wait.ts'
import type { Dispatch } from './dispatch.ts'
import type { JobDurations } from './job-durations.ts'
import type { Queue, RunningEntry } from './queue.ts'

/** A call of another process that wants a slot. Plain data. */
export interface SlotRequest
  extends Pick<RunningCall, 'id' | 'organizationId' | 'tokenId' | 'task' | 'modelId' | 'requestedModel' | 'createdAt'> {
  traceparent: string | undefined
  /** The body that the engine gets, where one of several engines is chosen by it. */
  prompt: string | Uint8Array | undefined
}

/** A slot that such a call has got. */
export interface RequestedSlot {
  lease: Lease
  /** Its place in the queue; undefined if it did not wait. */
  entry: RunningEntry | undefined
}

const requestFacts = [
  'id',
  'organizationId',
  'tokenId',
  'task',
  'modelId',
  'requestedModel',
  'createdAt',
  'traceparent',
] as const satisfies (keyof SlotRequest)[]

/** The call of a request, which waits here and runs elsewhere. Abort its `caller` to end the wait. */
export const requestedCall = (request: SlotRequest): RunningCall => ({
  ...pick(request, ...requestFacts),
  setIndex: -1,
  fallbackReason: null,
  timeToFirstTokenMs: null,
  startedAt: null,
  engineId: null,
  queuedMs: 0,
  referenceQueuedMs: 0,
  hasReference: false,
  gpuMs: 0,
  unbilledGpuMs: 0,
  energyMj: null,
  entry: undefined,
  waiting: undefined,
  ended: undefined,
  caller: new AbortSource(),
})

/** Slots for calls of other processes: each waits in the queue as if it ran here. */
export function openSlotRequests({
  dispatch,
  queue,
  durations,
  wait,
  find,
  mayBegin,
}: {
  dispatch: Pick<Dispatch, 'takeFree'>
  queue: Pick<Queue, 'ran'>
  durations: Pick<JobDurations, 'ran'>
  wait: ReturnType<typeof openCallWait>['wait']
  /** The current configuration, including disabled models. */
  find: (modelId: string) => Model | undefined
  /** Throws a Failure if the model may not do work of the token any more: it may have waited for long. */
  mayBegin?: ((model: Model, tokenId: string) => void) | undefined
}) {
  return {
    /** Takes a slot for the call, or waits for one. Rejects with the Failure that refuses it. */
    async take(call: RunningCall, prompt: SlotRequest['prompt']): Promise<RequestedSlot> {
      const model = find(call.modelId)
      if (!model?.enabled)
        throw new Failure('model_not_found', `The model '${call.modelId}' is no longer offered here.`)
      const lease = dispatch.takeFree(model.id, prompt)
      if (lease) return { lease, entry: undefined }
      const slot = await wait(call, { model, waitMs: slotWaitMs(model), prompt, isNew: true })
      try {
        mayBegin?.(model, call.tokenId)
        return slot
      } catch (thrown) {
        queue.ran(slot.entry, 0, false)
        slot.lease.release()
        throw thrown
      }
    },
    /** The call has ended. Call it before its slot is free. `completed`: its duration is typical. */
    ran(modelId: string, { entry }: Pick<RequestedSlot, 'entry'>, ranMs: number, completed: boolean): void {
      if (completed) durations.ran(modelId, null, ranMs)
      if (entry) queue.ran(entry, ranMs, completed)
    },
  }
}
export type SlotRequests = ReturnType<typeof openSlotRequests>
