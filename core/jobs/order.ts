import { type JobClass, jobClasses, type WaitingJob } from '../store/store.ts'
import { hasMore, indexIn, type Lane, waitingIn } from './lane.ts'
import { accountOf, type ModelQueue } from './windows.ts'

/** The lane that is served next. */
export interface NextLane {
  lane: Lane
  /** The higher class in which it competes because it is sparse, and is charged too. */
  promotedTo: JobClass | undefined
  /** It is served because it has waited too long. */
  aged: boolean
}

export interface OrderOptions {
  /** Monotonic milliseconds. */
  now: number
  /** A lane that has waited this long without being served goes before the others. */
  ageingMs: number
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  /** Whether stored jobs may be served too, or calls only. */
  jobs: boolean
  /** Organizations whose stored jobs are not served. */
  suspended: ReadonlySet<string>
  /** The assumed duration of an entry before any has run, milliseconds. */
  firstMs: number
}

/**
 * At most one in this many choices goes to a lane that has waited too long, so that a backlog cannot displace calls.
 */
const agedEvery = 4

/**
 * Chooses the lane to serve next. Pure, except that it creates missing accounts. Strict order of the classes; inside a
 * class deficit round robin: the organization with the lowest usage for its share is next, among equals the one served
 * longer ago, and of those never served the one that has waited longer. Two rules prevent starvation by the strict order:
 *
 * - An entry that arrives at an idle lane, with nothing of its organization and class waiting or running, competes with
 *   the highest waiting class once its own class would serve it (the sparse flows of FQ-CoDel, RFC 8290). So one job is
 *   not blocked by another organization's backlog of calls, and a backlog of jobs gains nothing.
 * - A lane that has waited longer than `ageingMs`, and twice as long as a fair round of all lanes takes, is served next,
 *   in at most one of four choices.
 */
export function nextLane(queue: ModelQueue, options: OrderOptions): NextLane | undefined {
  const best: Partial<Record<JobClass, Lane>> = {}
  let oldest: Lane | undefined
  let weights = 0
  for (const lane of queue.lanes.values()) {
    if (waitingIn(lane) === 0 && !hasMore(lane)) continue
    if (lane.class !== 'interactive' && (!options.jobs || options.suspended.has(lane.organizationId))) continue
    weights += Math.max(1, options.weightOf(lane.organizationId))
    if (!oldest || lane.waitingSince < oldest.waitingSince) oldest = lane
    const other = best[lane.class]
    if (!other || precedes(queue, lane, other, lane.class)) best[lane.class] = lane
  }
  if (!oldest) return undefined
  const roundMs = (weights * (queue.typicalMs ?? options.firstMs)) / Math.max(1, queue.underWay)
  const tooLong = options.now - oldest.waitingSince >= Math.max(options.ageingMs, 2 * roundMs)
  if (tooLong && queue.turnsSinceAged >= agedEvery - 1) return { lane: oldest, promotedTo: undefined, aged: true }
  return highest(queue, best)
}

/** The best lane of the highest waiting class, or a sparse one of a lower class with less usage there. */
function highest(queue: ModelQueue, best: Partial<Record<JobClass, Lane>>): NextLane {
  const top = jobClasses.find(jobClass => best[jobClass])!
  let lane = best[top]!
  for (const jobClass of jobClasses) {
    const other = best[jobClass]
    if (other?.sparse && other !== lane && precedes(queue, other, lane, top)) lane = other
  }
  return { lane, promotedTo: lane.class === top ? undefined : top, aged: false }
}

/** Whether a lane goes before another by the usage of their organizations in this class. */
function precedes(queue: ModelQueue, lane: Lane, other: Lane, jobClass: JobClass): boolean {
  const accounts = queue.classes[jobClass]
  const [own, others] = [accountOf(accounts, lane.organizationId), accountOf(accounts, other.organizationId)]
  if (own.used !== others.used) return own.used < others.used
  if (own.servedAt !== others.servedAt) return own.servedAt < others.servedAt
  // Of different classes the higher one goes first.
  return lane.class === other.class && lane.waitingSince < other.waitingSince
}

/** The classes that are served before this one. */
export const classesAbove = (jobClass: JobClass): readonly JobClass[] =>
  jobClasses.slice(0, jobClasses.indexOf(jobClass))

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
    longerAgo ??
    (others.servedAt < account.servedAt ||
      (others.servedAt === account.servedAt &&
        (other.waitingSince < own.waitingSince || (other.waitingSince === own.waitingSince && !passed))))
  return otherFirst ? whole + 1 : whole
}

/** Whether the organization of a lane has used less in its class than that of another lane. */
const hasUsedLess = ({ classes }: ModelQueue, lane: Lane, other: Lane): boolean =>
  accountOf(classes[lane.class], lane.organizationId).used < accountOf(classes[lane.class], other.organizationId).used

const rank = (jobClass: JobClass): number => jobClasses.indexOf(jobClass)
