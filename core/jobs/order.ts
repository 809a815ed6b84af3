import { type JobClass, jobClasses } from '../store/store.ts'
import { hasMore, type Lane, waitingIn } from './lane.ts'
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
 * class deficit round robin: the organization with the lowest usage for its share is next, and among equals the one
 * served longer ago. Two rules prevent starvation by the strict order:
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
  const [own, others] = [
    accountOf(queue.classes[jobClass], lane.organizationId),
    accountOf(queue.classes[jobClass], other.organizationId),
  ]
  return own.used < others.used || (own.used === others.used && own.servedAt < others.servedAt)
}

/** The classes that are served before this one. */
export const classesAbove = (jobClass: JobClass): readonly JobClass[] =>
  jobClasses.slice(0, jobClasses.indexOf(jobClass))
