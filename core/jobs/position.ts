import { type JobClass, jobClasses, type WaitingJob } from '../store/store.ts'
import { indexIn, type Lane, waitingIn } from './lane.ts'
import { accountOf, type ModelQueue } from './windows.ts'

/**
 * How many of its own lane are before an entry. Exact in the window; beyond it the jobs are taken to have come evenly.
 * Undefined: it does not wait there.
 */
export function positionInLane(lane: Lane, job: WaitingJob): number | undefined {
  const at = indexIn(lane, job)
  if (lane.window[at]?.id === job.id) return at
  if (job.rank < lane.through) return undefined
  const last = Math.max(0, lane.beyond - 1)
  const newest = Math.max(lane.newest, job.rank)
  const from = Number.isFinite(lane.through) ? lane.through : job.rank
  const part = newest > from && job.rank > from ? (job.rank - from) / (newest - from) : 1
  return lane.window.length + Math.round(last * part)
}

/**
 * How many entries of all lanes come before the one at `index` of its lane, when each takes what is usual for its lane
 * and nothing new comes. Exact inside a class; sparse lanes of other classes are counted with one entry. `step` is what
 * one entry adds to what the account of its lane has had.
 */
export function entriesAhead(queue: ModelQueue, own: Lane, index: number, step: (lane: Lane) => number): number {
  const sparse = own.sparse && index === 0
  let ahead = index
  let passed = false
  for (const other of queue.lanes.values()) {
    if (other === own) passed = true
    const waiting = waitingIn(other)
    if (other === own || waiting === 0) continue
    const order = rank(other.class) - rank(own.class)
    if (order === 0) ahead += Math.min(waiting, turnsBefore(queue, { own, index, other, passed }, step))
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
  /** Whether `own` was looked at before `other`. */
  passed: boolean
}

/** How many entries of `other` begin before the own one, which is of the same class, by what both accounts have had. */
function turnsBefore(queue: ModelQueue, { own, index, other, passed }: Pair, step: (lane: Lane) => number): number {
  const accounts = queue.classes[own.class]
  const [account, others] = [accountOf(accounts, own.organizationId), accountOf(accounts, other.organizationId)]
  const ownStep = step(own)
  const begins = account.had + index * ownStep
  if (others.had > begins) return 0
  const otherStep = Math.max(step(other), Number.EPSILON)
  const rounds = (begins - others.had) / otherStep
  const whole = Math.ceil(rounds)
  if (!Number.isInteger(rounds)) return whole
  // Both begin at the same point: the one that was served longer ago is first.
  const [lastOwn, lastOther] = [index > 0 ? ownStep : Infinity, rounds > 0 ? otherStep : Infinity]
  const longerAgo = lastOwn !== lastOther ? lastOther > lastOwn : rounds !== index ? rounds < index : undefined
  const otherFirst =
    longerAgo ?? (others.servedAt < account.servedAt || (others.servedAt === account.servedAt && !passed))
  return otherFirst ? whole + 1 : whole
}

/** Whether the organization of a lane has had less in its class than that of another lane. */
const hasUsedLess = ({ classes }: ModelQueue, lane: Lane, other: Lane): boolean =>
  accountOf(classes[lane.class], lane.organizationId).had < accountOf(classes[lane.class], other.organizationId).had

const rank = (jobClass: JobClass): number => jobClasses.indexOf(jobClass)
