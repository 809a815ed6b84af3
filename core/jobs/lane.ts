import type { JobClass, WaitingJob } from '../store/store.ts'

/**
 * The waiting entries of one model, organization and class. Memory holds the first stored jobs, the rest is in the
 * store: the window is complete up to the rank `completeTo`, which is infinite if nothing is beyond it. Calls are never in
 * the store, so their lanes are complete.
 */
export interface Lane {
  readonly modelId: string
  readonly class: JobClass
  readonly organizationId: string
  window: WaitingJob[]
  completeTo: number
  /** The estimated number of jobs beyond the window. Corrected by every read that reaches the end of the lane. */
  inStore: number
  /** The highest rank that is only in the store. */
  newest: number
  /** How many entries have been added. */
  arrived: number
  /** How many of its entries were taken and have not ended. */
  underWay: number
  /** Since when it waits without one of its entries being served, monotonic milliseconds. */
  waitingSince: number
  /** Its first entry arrived at an empty, idle lane, and competes with the highest waiting class. */
  sparse: boolean
  /** The current read of the store. */
  reading: Reading | null
  /** When the reference order began its first entries, in their order: times of the fleet's clock. */
  readonly begun: number[]
}

/** The usage of an organization of one model in one class. */
export interface Account {
  /** GPU milliseconds divided by its weight: the lowest is next. */
  used: number
  /**
   * When it was last served, as a count of taken entries: of two with the same usage, the one served longer ago is
   * next.
   */
  servedAt: number
  /** How many entries charged to it have not ended. */
  underWay: number
  /** Milliseconds that its entries typically take; null before the first one has ended. */
  typicalMs: number | null
}

/** Changes during a read of the store, which the read may have missed. */
export interface Reading {
  /** The lowest rank of jobs that arrived meanwhile and are only in the store. */
  lowestArrival: number
  /** Ids that no longer wait. */
  readonly noLongerWaiting: Set<string>
}

export const newLane = (modelId: string, jobClass: JobClass, organizationId: string, now: number): Lane => ({
  modelId,
  class: jobClass,
  organizationId,
  window: [],
  completeTo: Number.POSITIVE_INFINITY,
  inStore: 0,
  newest: Number.NEGATIVE_INFINITY,
  arrived: 0,
  underWay: 0,
  waitingSince: now,
  sparse: false,
  reading: null,
  begun: [],
})

export const waitingIn = (lane: Lane): number => lane.window.length + lane.inStore

/** Whether the store may have jobs of it that are not in memory. */
export const hasMore = (lane: Lane): boolean => lane.completeTo < Number.POSITIVE_INFINITY

const before = (a: WaitingJob, b: WaitingJob): boolean => a.rank < b.rank || (a.rank === b.rank && a.id < b.id)

/** The index of a job in the window, or the one at which it would be inserted. */
export function indexIn({ window }: Lane, job: WaitingJob): number {
  let [low, high] = [0, window.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (before(window[middle]!, job)) low = middle + 1
    else high = middle
  }
  return low
}

/** Adds a waiting entry. A window of more than twice `size` is shortened; the removed end is only in the store. */
export function insert(lane: Lane, job: WaitingJob, size: number): void {
  lane.reading?.noLongerWaiting.delete(job.id)
  lane.arrived++
  if (job.rank > lane.completeTo) {
    lane.inStore++
    lane.newest = Math.max(lane.newest, job.rank)
    if (lane.reading) lane.reading.lowestArrival = Math.min(lane.reading.lowestArrival, job.rank)
    return
  }
  const at = indexIn(lane, job)
  if (lane.window[at]?.id === job.id) return
  lane.window.splice(at, 0, job)
  // Calls exist only here, and max_queue bounds them.
  if (lane.class === 'interactive' || lane.window.length <= 2 * size) return
  lane.inStore += lane.window.length - size
  lane.newest = Math.max(lane.newest, lane.window.at(-1)!.rank)
  lane.window.length = size
  lane.begun.length = Math.min(lane.begun.length, size)
  lane.completeTo = lane.window.at(-1)!.rank
  // A read that started at the end of the longer window would leave a gap.
  lane.reading = null
}

/** Removes an entry; false if it was not in the window. */
export function withdraw(lane: Lane, job: WaitingJob): boolean {
  lane.reading?.noLongerWaiting.add(job.id)
  const at = indexIn(lane, job)
  if (lane.window[at]?.id !== job.id) return false
  lane.window.splice(at, 1)
  lane.begun.splice(at, 1)
  return true
}

/** Adds the jobs that a read found from `completeTo` on, by rank; `complete`: there are no more. */
export function fill(lane: Lane, reading: Reading, found: readonly WaitingJob[], complete: boolean): void {
  if (lane.reading !== reading) return
  lane.reading = null
  // The read is known to be complete only up to the lowest rank that arrived meanwhile.
  const all = found.filter(job => job.rank < reading.lowestArrival)
  for (const job of all) {
    const at = indexIn(lane, job)
    if (reading.noLongerWaiting.has(job.id) || lane.window[at]?.id === job.id) continue
    lane.window.splice(at, 0, job)
    lane.inStore = Math.max(0, lane.inStore - 1)
  }
  if (complete && reading.lowestArrival === Number.POSITIVE_INFINITY) {
    lane.completeTo = Number.POSITIVE_INFINITY
    lane.inStore = 0
  } else if (all.length > 0) lane.completeTo = Math.max(lane.completeTo, all.at(-1)!.rank)
}
