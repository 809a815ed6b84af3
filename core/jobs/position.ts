import { type JobClass, jobClasses, type WaitingJob } from '../store/store.ts'
import { indexIn, type Lane, waitingIn } from './lane.ts'
import { accountOf, type ModelQueue } from './windows.ts'

/**
 * Returns how many entries of its lane are before a job. Exact in the window; beyond it, assumes that jobs arrived
 * evenly. Undefined if the job does not wait in the lane.
 */
export function positionInLane(lane: Lane, job: WaitingJob): number | undefined {
  const at = indexIn(lane, job)
  if (lane.window[at]?.id === job.id) return at
  if (job.rank < lane.completeTo) return undefined
  const last = Math.max(0, lane.inStore - 1)
  const newest = Math.max(lane.newest, job.rank)
  const from = Number.isFinite(lane.completeTo) ? lane.completeTo : job.rank
  const part = newest > from && job.rank > from ? (job.rank - from) / (newest - from) : 1
  return lane.window.length + Math.round(last * part)
}

/**
 * How many entries of all lanes go before the one at `index` of its lane, if each takes the typical time of its lane
 * and no new entries arrive. Exact inside a class; a sparse lane of another class counts as one entry. `step` is what
 * one entry adds to the used time of its lane's account. Jobs of suspended organizations are not ahead.
 */
export function entriesAhead(
  queue: ModelQueue,
  own: Lane,
  { index, suspended }: { index: number; suspended: ReadonlySet<string> },
  step: (lane: Lane) => number,
): number {
  const sparse = own.sparse && index === 0
  let ahead = index
  let passed = false
  for (const other of queue.lanes.values()) {
    if (other === own) passed = true
    const waiting = waitingIn(other)
    if (other === own || waiting === 0) continue
    if (other.class !== 'interactive' && suspended.has(other.organizationId)) continue
    const order = rank(other.class) - rank(own.class)
    if (order === 0) ahead += Math.min(waiting, entriesBefore(queue, { own, index, other, passed }, step))
    else if (order < 0 && !sparse) ahead += waiting
    else if (order < 0) ahead += hasUsedLess(queue, other, own) ? 1 : 0
    else if (order > 0 && other.sparse && !sparse) ahead++
  }
  return ahead
}

interface Pair {
  own: Lane
  index: number
  other: Lane
  /** Whether `own` is before `other` in the order of the lanes. */
  passed: boolean
}

/** How many entries of `other` start before the own one of the same class, by what both accounts have used. */
function entriesBefore(queue: ModelQueue, { own, index, other, passed }: Pair, step: (lane: Lane) => number): number {
  const accounts = queue.classes[own.class]
  const [account, others] = [accountOf(accounts, own.organizationId), accountOf(accounts, other.organizationId)]
  const ownStep = step(own)
  const begins = account.used + index * ownStep
  if (others.used > begins) return 0
  const otherStep = Math.max(step(other), Number.EPSILON)
  const rounds = (begins - others.used) / otherStep
  const whole = Math.ceil(rounds)
  if (!Number.isInteger(rounds)) return whole
  // Both start at the same point: the one that was served longer ago is first.
  const [lastOwn, lastOther] = [index > 0 ? ownStep : Infinity, rounds > 0 ? otherStep : Infinity]
  const longerAgo = lastOwn !== lastOther ? lastOther > lastOwn : rounds !== index ? rounds < index : undefined
  const otherFirst =
    longerAgo ?? (others.servedAt < account.servedAt || (others.servedAt === account.servedAt && !passed))
  return otherFirst ? whole + 1 : whole
}

/** Whether the organization of a lane has used less in its class than that of another lane. */
const hasUsedLess = ({ classes }: ModelQueue, lane: Lane, other: Lane): boolean =>
  accountOf(classes[lane.class], lane.organizationId).used < accountOf(classes[lane.class], other.organizationId).used

const rank = (jobClass: JobClass): number => jobClasses.indexOf(jobClass)
