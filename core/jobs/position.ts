import type { WaitingJob } from '../store/store.ts'
import { type Lane, placeOf, waitingIn } from './lane.ts'

/**
 * How many of its own organization are before a job. Exact in the window; beyond it the jobs are taken to have come
 * evenly. Undefined: it does not wait there.
 */
export function indexIn(lane: Lane, job: WaitingJob): number | undefined {
  const at = placeOf(lane, job)
  if (lane.window[at]?.id === job.id) return at
  if (job.rank < lane.through) return undefined
  const last = Math.max(0, lane.beyond - 1)
  const newest = Math.max(lane.newest, job.rank)
  const from = Number.isFinite(lane.through) ? lane.through : job.rank
  const part = newest > from && job.rank > from ? (job.rank - from) / (newest - from) : 1
  return lane.window.length + Math.round(last * part)
}

/**
 * How many jobs of all organizations come before the one at `index` of its lane, when every job takes what is usual.
 * `lanes` are in the order in which they are looked at. `step` is what one job adds to what its lane has had: its k-th
 * job begins when the lane has had `had + k·step`.
 */
export function jobsAhead(own: Lane, index: number, lanes: Iterable<Lane>, step: (lane: Lane) => number): number {
  const ownStep = step(own)
  const begins = own.had + index * ownStep
  let ahead = index
  let passed = false
  for (const other of lanes) {
    if (other === own) passed = true
    if (other === own || waitingIn(other) === 0 || other.had > begins) continue
    const otherStep = Math.max(step(other), Number.EPSILON)
    const rounds = (begins - other.had) / otherStep
    let first = Math.ceil(rounds)
    if (Number.isInteger(rounds)) {
      // Both begin at the same point: the one that was served longer ago is first.
      const [lastOwn, lastOther] = [index > 0 ? ownStep : Infinity, rounds > 0 ? otherStep : Infinity]
      const longerAgo = lastOwn !== lastOther ? lastOther > lastOwn : rounds !== index ? rounds < index : undefined
      if (longerAgo ?? (other.servedAt < own.servedAt || (other.servedAt === own.servedAt && !passed))) first++
    }
    ahead += Math.min(first, waitingIn(other))
  }
  return ahead
}
