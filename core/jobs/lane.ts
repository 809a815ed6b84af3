import type { JobClass, WaitingJob } from '../store/store.ts'

/**
 * The jobs of one organization and class that wait for one model. Memory holds the first of them, the rest is in the store: the
 * window is complete up to the rank `through`, which is infinite when there is nothing beyond it.
 */
export interface Lane {
  readonly modelId: string
  readonly class: JobClass
  readonly organizationId: string
  window: WaitingJob[]
  through: number
  /** How many are believed to wait beyond the window. A figure for people: nothing depends on it being right. */
  beyond: number
  /** The highest rank that was left to the store. */
  newest: number
  /** GPU milliseconds that it has had, divided by its weight: whoever has had least is next. */
  had: number
  /** How long its jobs take, learnt; null before the first one. */
  typicalMs: number | null
  /** Of its jobs, how many were taken and have not ended. */
  underWay: number
  /** When it was served last, counted in turns: of two that have had the same, the other one is next. */
  servedAt: number
  /** A look into the store that is under way. */
  reading: Reading | null
}

/** What happened since a look into the store was begun, which it may have missed. */
export interface Reading {
  /** The lowest rank of those that came and are only in the store. */
  came: number
  /** Does not wait any more. */
  readonly gone: Set<string>
}

/** What tells a lane from others: of the queue of one model those of its class and organization. */
export type LaneKey = Pick<Lane, 'modelId' | 'class' | 'organizationId'>

export const newLane = (key: LaneKey, had: number): Lane => ({
  modelId: key.modelId,
  class: key.class,
  organizationId: key.organizationId,
  window: [],
  through: Number.POSITIVE_INFINITY,
  beyond: 0,
  newest: Number.NEGATIVE_INFINITY,
  had,
  typicalMs: null,
  underWay: 0,
  servedAt: 0,
  reading: null,
})

export const waitingIn = (lane: Lane): number => lane.window.length + lane.beyond

/** Whether the store may have jobs of it that memory does not. */
export const hasMore = (lane: Lane): boolean => lane.through < Number.POSITIVE_INFINITY

const before = (a: WaitingJob, b: WaitingJob): boolean => a.rank < b.rank || (a.rank === b.rank && a.id < b.id)

/** Where a job stands in the window, or would stand. */
export function placeOf({ window }: Lane, job: WaitingJob): number {
  let [low, high] = [0, window.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (before(window[middle]!, job)) low = middle + 1
    else high = middle
  }
  return low
}

/** Takes in a job that waits from now on. A window of more than twice `size` leaves its end to the store. */
export function insert(lane: Lane, job: WaitingJob, size: number): void {
  lane.reading?.gone.delete(job.id)
  if (job.rank > lane.through) {
    lane.beyond++
    lane.newest = Math.max(lane.newest, job.rank)
    if (lane.reading) lane.reading.came = Math.min(lane.reading.came, job.rank)
    return
  }
  const at = placeOf(lane, job)
  if (lane.window[at]?.id === job.id) return
  lane.window.splice(at, 0, job)
  if (lane.window.length <= 2 * size) return
  lane.beyond += lane.window.length - size
  lane.newest = Math.max(lane.newest, lane.window.at(-1)!.rank)
  lane.window.length = size
  lane.through = lane.window.at(-1)!.rank
  // A look that began at the end of the longer window would leave a gap.
  lane.reading = null
}

/** Whether it was in the window. */
export function withdraw(lane: Lane, job: WaitingJob): boolean {
  lane.reading?.gone.add(job.id)
  const at = placeOf(lane, job)
  if (lane.window[at]?.id !== job.id) return false
  lane.window.splice(at, 1)
  return true
}

/** Takes in what a look found from `through` on, by rank; `complete`: there was no more than that. */
export function fill(lane: Lane, reading: Reading, found: readonly WaitingJob[], complete: boolean): void {
  if (lane.reading !== reading) return
  lane.reading = null
  // Only up to what came meanwhile is it known to be all.
  const all = found.filter(job => job.rank < reading.came)
  for (const job of all) {
    const at = placeOf(lane, job)
    if (reading.gone.has(job.id) || lane.window[at]?.id === job.id) continue
    lane.window.splice(at, 0, job)
    lane.beyond = Math.max(0, lane.beyond - 1)
  }
  if (complete && reading.came === Number.POSITIVE_INFINITY) {
    lane.through = Number.POSITIVE_INFINITY
    lane.beyond = 0
  } else if (all.length > 0) lane.through = Math.max(lane.through, all.at(-1)!.rank)
}
