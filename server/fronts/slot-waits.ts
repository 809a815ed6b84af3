import type { Failure } from '../../core/failure.ts'
import type { CallOptions, RunningCall } from '../../core/jobs/call.ts'
import { passOn, type WaitReason } from '../../core/jobs/front-calls.ts'
import type { Lease } from '../../core/models/fleet.ts'
import type { Model } from '../../core/models/model.ts'
import type { GrantedEngine } from '../../core/models/slot-grants.ts'
import { received } from '../../core/store/sqlite/sent-failure.ts'
import type { LentSlot, ToFront } from './messages.ts'
import type { Outbox } from './outbox.ts'

/** For so long after control has answered a call of a model itself, those of this model are passed on unasked, milliseconds. */
const passOnMs = 2_000

/** What a front uses of the engines, which `cli/server` opens because the server does not know them. */
export interface FrontEngines {
  granted(engine: GrantedEngine, slots: number): void
  take: (modelId: string) => Lease | undefined
  lent(engine: GrantedEngine, keeps: boolean, waited: Pick<Lease, 'waitedMs' | 'loadedMs'>): Lease | undefined
  recall(engineId: string): void
  unreachable(engineId: string, failure: () => Failure): void
  ended(engineId: string, failure: () => Failure, slotsInUse?: number): void
  look(): void
}

interface Waiting {
  call: RunningCall
  granted: (lease: Lease) => void
  refused: (thrown: unknown) => void
}

/** The calls of a front that wait for slots in the queue of control. */
export function openSlotWaits({
  outbox,
  engines,
  now = () => performance.now(),
}: {
  outbox: Pick<Outbox, 'wanted' | 'withdrawn' | 'refused' | 'ran'>
  engines: Pick<FrontEngines, 'lent'>
  now?: () => number
}) {
  const waiting = new Map<string, Waiting>()
  const reasons = new Map<string, WaitReason>()
  /** Until when the calls of a model are passed on. */
  const passedOn = new Map<string, number>()

  function leave(id: string): Waiting | undefined {
    const one = waiting.get(id)
    waiting.delete(id)
    return one
  }

  function begin({ id, engine, keeps, ...times }: LentSlot): void {
    const { queuedMs, referenceQueuedMs, hasReference, loadedMs } = times
    const lease = engines.lent(engine, keeps, { waitedMs: queuedMs, loadedMs })
    const one = leave(id)
    if (!one || !lease) {
      outbox.ran(id, 0, false)
      lease?.release()
      return one?.refused(passOn)
    }
    Object.assign(one.call, { queuedMs, referenceQueuedMs, hasReference })
    one.granted(lease)
  }

  return {
    /** See `wait` of `openFrontCalls`. */
    wait(
      this: void,
      call: RunningCall,
      { id: modelId, fallbacks, adapters, replicas }: Model,
      prompt: CallOptions['prompt'],
    ) {
      if (fallbacks || adapters || (passedOn.get(modelId) ?? 0) > now()) return Promise.reject(passOn)
      if (call.caller.aborted) return Promise.reject(call.caller.reason)
      return new Promise<Lease>((resolve, reject) => {
        const onAbort = () => {
          leave(call.id)
          outbox.withdrawn(call.id)
          reject(call.caller.reason)
        }
        const settled = () => call.caller.removeEventListener('abort', onAbort)
        waiting.set(call.id, {
          call,
          granted(lease) {
            settled()
            resolve(lease)
          },
          refused(thrown) {
            settled()
            reject(thrown)
          },
        })
        call.caller.addEventListener('abort', onAbort)
        const { id, organizationId, tokenId, task, requestedModel, createdAt, traceparent } = call
        const near = (replicas.max ?? 1) > 1 ? prompt : undefined
        outbox.wanted({
          id,
          organizationId,
          tokenId,
          task,
          modelId,
          requestedModel,
          createdAt,
          traceparent,
          prompt: near,
        })
      })
    },
    reasonOf: (modelId: string): WaitReason => reasons.get(modelId) ?? { text: null, etaMs: null },

    granted: (slots: readonly LentSlot[]): void => slots.forEach(begin),
    refused(refusals: Extract<ToFront, { kind: 'refused' }>['refusals']): void {
      for (const { id, failure } of refusals) {
        outbox.refused(id)
        const one = leave(id)
        if (one && !failure) passedOn.set(one.call.modelId, now() + passOnMs)
        one?.refused(failure ? received(failure) : passOn)
      }
    },
    learnReasons(all: Extract<ToFront, { kind: 'waiting' }>['reasons']): void {
      for (const { modelId, text, etaMs } of all) reasons.set(modelId, { text, etaMs })
    },
  }
}
