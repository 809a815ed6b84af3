import type { Fleet, FleetSnapshot } from '../fleet.ts'
import type { Model } from '../models/model.ts'
import type { JobRecord } from '../store/store.ts'
import { workOf } from '../tasks/work.ts'
import type { Dispatch } from './dispatch.ts'
import type { Live } from './live.ts'
import type { Pace } from './pace.ts'
import { type Queue, waitingOf } from './queue.ts'
import type { Facts } from './standing.ts'

/** A snapshot of the fleet serves everybody who asks for that long. */
const snapshotMs = 100

/** Collects what is known about a job besides its record. */
export function openFacts({
  fleet,
  models,
  queue,
  live,
  pace,
  dispatch,
  clock,
}: {
  fleet: Pick<Fleet, 'snapshot'>
  models: { find(id: string): Model | undefined }
  queue: Queue
  live: Live
  pace: Pace
  dispatch: Dispatch
  clock: { now(): number }
}) {
  let looked: { at: number; snapshot: FleetSnapshot } | undefined

  function snapshot(): FleetSnapshot {
    const at = performance.now()
    if (!looked || at - looked.at > snapshotMs) looked = { at, snapshot: fleet.snapshot() }
    return looked.snapshot
  }

  return (job: JobRecord): Facts => {
    const { modelId } = job
    const { residents, models: activities } = snapshot()
    let [slots, freeSlots] = [0, 0]
    for (const one of residents) {
      if (one.modelId !== modelId || one.state !== 'ready') continue
      slots += one.slots
      freeSlots += Math.max(0, one.slots - one.leases)
    }
    return {
      now: clock.now(),
      run: live.find(job.id),
      position: job.status === 'pending' ? queue.position(waitingOf(job)) : undefined,
      expectedMs: pace.expected(modelId, workOf(job.task, job.inputs)),
      usualMs: pace.expected(modelId, null),
      model: models.find(modelId),
      activity: activities[modelId],
      slots,
      freeSlots,
      cooling: dispatch.cooling(modelId),
    }
  }
}
