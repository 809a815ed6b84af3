import type { Fleet, FleetSnapshot } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import { type JobRecord, waitingOf } from '../store/store.ts'
import { workOf } from '../tasks/registry.ts'
import type { Dispatch } from './dispatch.ts'
import { type JobDurations, untilBegun } from './job-durations.ts'
import type { ProgressFacts } from './job-progress.ts'
import type { LiveRuns } from './live-runs.ts'
import type { Queue } from './queue.ts'

/** How long a snapshot of the fleet is reused, milliseconds. */
const snapshotMs = 100

/** Collects what is known about a job besides its record. */
export function openJobFacts(options: {
  fleet: Pick<Fleet, 'snapshot'>
  models: { find(id: string): Model | undefined }
  queue: Queue
  live: LiveRuns
  durations: JobDurations
  dispatch: Dispatch
  clock: { now(): number }
}) {
  const { fleet, models, queue, live, durations, dispatch, clock } = options
  let cached: { at: number; snapshot: FleetSnapshot } | undefined

  function snapshot(): FleetSnapshot {
    const at = performance.now()
    if (!cached || at - cached.at > snapshotMs) cached = { at, snapshot: fleet.snapshot() }
    return cached.snapshot
  }

  function ofModel(modelId: string) {
    const { residents, models: activities } = snapshot()
    let [slots, freeSlots] = [0, 0]
    for (const one of residents) {
      if (one.modelId !== modelId || one.state !== 'ready') continue
      slots += one.slots
      freeSlots += Math.max(0, one.slots - one.leases)
    }
    return {
      typicalMs: durations.expected(modelId, null),
      model: models.find(modelId),
      activity: activities[modelId],
      slots,
      freeSlots,
      pause: dispatch.pause(modelId),
    }
  }

  return {
    ofJob(job: JobRecord): ProgressFacts {
      const { modelId } = job
      return {
        now: clock.now(),
        run: live.find(job.id),
        position: job.status === 'pending' ? queue.position(waitingOf(job)) : undefined,
        expectedMs: durations.expected(modelId, workOf(job.task, job.inputs)),
        ...ofModel(modelId),
      }
    },
    /** Of the first entry in the queue of the model. */
    ofFirst: (modelId: string): ProgressFacts => ({
      now: clock.now(),
      run: undefined,
      position: 0,
      expectedMs: null,
      ...ofModel(modelId),
    }),
    /** How many entries wait for the model, and when one more job would start. */
    ofModel(modelId: string): QueueForecast {
      const { typicalMs, activity, slots, freeSlots } = ofModel(modelId)
      const { interactive, background } = queue.waiting(modelId)
      const waiting = interactive + background
      // A model of a peer has a queue there, too.
      const loadMs = activity?.status === 'warm' ? (activity.elsewhere?.etaMs ?? 0) : (activity?.etaMs ?? null)
      const freeMs = waiting === 0 && freeSlots > 0 ? 0 : null
      const queueMs =
        slots === 0 && waiting === 0 ? 0 : untilBegun({ ahead: waiting, slots: Math.max(1, slots), freeMs }, typicalMs)
      return { waiting, interactive, typicalMs, etaMs: loadMs === null || queueMs === null ? null : loadMs + queueMs }
    },
  }
}

/** How many entries wait for a model, and when one more job would start. */
export interface QueueForecast {
  /** Calls and jobs. */
  waiting: number
  /** Of these, calls. */
  interactive: number
  /** How long a job of the model runs on average, milliseconds; null before one has ended. */
  typicalMs: number | null
  /** Expected milliseconds until one more job would start; null if unknown. */
  etaMs: number | null
}
