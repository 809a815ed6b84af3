import { AbortSource, type CallerSignal } from '../../core/abort-source.ts'
import type { CallEnd } from '../../core/jobs/call.ts'
import { openCalls } from '../../core/jobs/calls.ts'
import { openDispatch } from '../../core/jobs/dispatch.ts'
import { openJobDurations } from '../../core/jobs/job-durations.ts'
import { openQueue } from '../../core/jobs/queue.ts'
import { openSuspects } from '../../core/jobs/suspects.ts'
import { openWaitingCalls } from '../../core/jobs/waiting-calls.ts'
import { openLog } from '../../core/log.ts'
import type { Fleet, Lease } from '../../core/models/fleet.ts'
import type { Model } from '../../core/models/model.ts'
import { admittedWork } from '../core/_admission.ts'

/** A fleet whose slots can be requested one by one. */
export type LeasingFleet = Fleet & {
  /** Waits in the queue for a slot, as a call of one organization. */
  lease(model: Model, of: { waitMs: number; signal?: CallerSignal }): Promise<Lease>
  /** The number of callers that wait for a slot of the model. */
  waiting(modelId: string): number
}

/** The fleet behind a queue, as in the server; the test holds the slots that it gets. */
export function leasing(fleet: Fleet, models: readonly Model[]): LeasingFleet {
  const log = openLog('error')
  const queue = openQueue({ weightOf: () => 1 })
  const waiting = openWaitingCalls({ queue })
  const none = () => {
    throw new Error('There are no jobs here')
  }
  const suspects = openSuspects()
  const dispatch = openDispatch({
    suspects,
    fleet,
    find: id => models.find(model => model.id === id),
    queue,
    calls: waiting,
    refill: { begin: none, wake() {}, now: none, close: none },
    log,
    begin: none,
    unwritten: () => 0,
    slots: 1,
    slotsPerModel: 1,
  })
  let came = 0
  const recorder = {
    record() {},
    recordText() {},
    find: () => undefined,
    requireRoom() {},
    whenWritten() {},
    unwritten: () => [],
    waiting: 0,
    hold: none,
    resume() {},
    close: none,
  }
  const calls = openCalls({
    suspects,
    fleet,
    dispatch,
    queue,
    waiting,
    recorder,
    durations: openJobDurations(),
    used() {},
    rankOf: () => ++came,
    holdMs: 600_000,
    log,
  })
  return Object.assign(Object.create(fleet) as Fleet, fleet, {
    waiting: (modelId: string): number => queue.waiting(modelId).interactive,
    lease(model: Model, { waitMs, signal }: { waitMs: number; signal?: CallerSignal }): Promise<Lease> {
      const caller = new AbortSource()
      const leave = () => caller.abort(signal!.reason)
      if (signal?.aborted) leave()
      else signal?.addEventListener('abort', leave)
      return new Promise((resolve, reject) => {
        const held = (lease: Lease): Promise<CallEnd> => {
          const { promise, resolve: end } = Promise.withResolvers<CallEnd>()
          const release = () => {
            lease.release()
            end({ how: 'completed', usage: { inputTokens: 0, outputTokens: 0 } })
          }
          resolve({
            engineId: lease.engineId,
            modelId: lease.modelId,
            sharesFolders: lease.sharesFolders,
            waitedMs: lease.waitedMs,
            loadedMs: lease.loadedMs,
            get othersAtEnd() {
              return lease.othersAtEnd
            },
            open: (...call) => lease.open(...call),
            followProgress: listener => lease.followProgress(listener),
            connect: (...socket) => lease.connect(...socket),
            abandoned: () => lease.abandoned(),
            used: () => lease.used(),
            release,
            [Symbol.dispose]: release,
          })
          return promise
        }
        const named = { organizationId: 'org', tokenId: 'token', task: model.tasks[0]!, modelId: model.id }
        const admitted = { ...admittedWork(named), model }
        calls.run({ admitted, createdAt: 0, waitMs, caller }, held).catch(reject)
      })
    },
  })
}
