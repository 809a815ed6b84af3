import type { ReferenceOrder } from '../models/fleet.ts'
import { jobClasses, type WaitingJob } from '../store/store.ts'
import type { Lane } from './lane.ts'
import type { ModelQueue } from './windows.ts'

export interface ReferenceOrderOptions {
  queues: () => Iterable<[modelId: string, ModelQueue]>
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  /** Whether entries of the lane may be served now. */
  mayRun: (lane: Lane) => boolean
  now: () => number
  /** Called with each entry that it begins, and when. */
  begun: (job: WaitingJob, at: number) => void
  /** The first entry of a lane that has waited this long without being served is treated as one of the highest class. */
  ageingMs: number
}

/**
 * The order in which everything that waits would be served if it did not matter which models are loaded: by class, then
 * the organization that has used least for its share, then by arrival. With one class and one organization it is first
 * come, first served. `lane.begun` counts the first entries of a lane that this order has begun. What is served or leaves
 * is removed from it, so it never holds more than what waits.
 */
export function openReferenceOrder(options: ReferenceOrderOptions): ReferenceOrder {
  const { queues, weightOf, mayRun, now, begun, ageingMs } = options
  /** The slot time that this order has given to each organization, divided by its share, milliseconds. */
  const used = new Map<string, number>()
  /** An organization that was idle continues here, without savings. */
  let floor = 0
  let chosen: Lane | undefined

  const usedBy = ({ organizationId }: Lane): number => Math.max(floor, used.get(organizationId) ?? 0)
  /** The first entry of a sparse lane competes with the highest class, as in the order of one model. */
  const classOf = (lane: Lane): number =>
    lane.begun.length === 0 && (lane.sparse || now() - lane.waitingSince >= ageingMs)
      ? 0
      : jobClasses.indexOf(lane.class)
  const rankOf = ({ window, begun }: Lane): number => window[begun.length]!.rank
  const order = (lane: Lane, other: Lane): number =>
    classOf(lane) - classOf(other) || usedBy(lane) - usedBy(other) || rankOf(lane) - rankOf(other)

  return {
    next() {
      chosen = undefined
      for (const [, { lanes }] of queues())
        for (const lane of lanes.values())
          if (lane.begun.length < lane.window.length && mayRun(lane) && (!chosen || order(lane, chosen) < 0))
            chosen = lane
      return chosen?.modelId
    },
    begin(at, slotMs) {
      if (!chosen) return
      begun(chosen.window[chosen.begun.length]!, at)
      chosen.begun.push(at)
      floor = usedBy(chosen)
      used.set(chosen.organizationId, floor + slotMs / Math.max(1, weightOf(chosen.organizationId)))
      chosen = undefined
    },
    reset() {
      used.clear()
      floor = 0
      for (const [, { lanes }] of queues()) for (const lane of lanes.values()) lane.begun.length = 0
    },
  }
}
