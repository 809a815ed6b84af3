import { type JobClass, jobClasses } from '../store/store.ts'
import { hasMore, type Lane, waitingIn } from './lane.ts'
import { accountOf, type ModelQueue } from './windows.ts'

/** The lane whose turn it is. */
export interface Choice {
  lane: Lane
  /** It goes before a higher class for being sparse, and is charged there too. */
  promoted: boolean
  /** It is served for having waited too long. */
  aged: boolean
}

export interface OrderOptions {
  /** Monotonic milliseconds. */
  now: number
  /** A lane that has waited so long without being served goes before the others. */
  ageingMs: number
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  /** Whether stored jobs may be served too, or calls only. */
  jobs: boolean
  /** Milliseconds that an entry is taken to need before any has run. */
  firstMs: number
}

/** Of so many turns at most one goes to a lane that has waited too long, so that a backlog cannot displace calls. */
const agedEvery = 4

/**
 * Whose turn it is. Pure. Strict order of the classes; inside a class deficit round robin: the organization that has
 * had least for its share, of equals the one served longer ago. Two rules keep strict order from starving anybody:
 *
 * - An entry that comes to an idle lane, with nothing of its organization and class waiting or running, competes with
 *   the interactive class once its own class would serve it (the sparse flows of FQ-CoDel, RFC 8290). So one job is not
 *   held up by another organization's backlog of calls, and a backlog of jobs gains nothing.
 * - A lane that has waited longer than `ageingMs`, and twice as long as a fair round of all lanes takes, is served next,
 *   in at most one of four turns.
 */
export function nextLane(queue: ModelQueue, options: OrderOptions): Choice | undefined {
  const best: Partial<Record<JobClass, Lane>> = {}
  let oldest: Lane | undefined
  let weights = 0
  for (const lane of queue.lanes.values()) {
    if (waitingIn(lane) === 0 && !hasMore(lane)) continue
    if (!options.jobs && lane.class !== 'interactive') continue
    weights += Math.max(1, options.weightOf(lane.organizationId))
    if (!oldest || lane.waitingSince < oldest.waitingSince) oldest = lane
    const other = best[lane.class]
    if (!other || precedes(queue, lane, other, lane.class)) best[lane.class] = lane
  }
  if (!oldest) return undefined
  const roundMs = (weights * (queue.typicalMs ?? options.firstMs)) / Math.max(1, queue.underWay)
  const tooLong = options.now - oldest.waitingSince >= Math.max(options.ageingMs, 2 * roundMs)
  if (tooLong && queue.turnsSinceAged >= agedEvery - 1) return { lane: oldest, promoted: false, aged: true }
  return highest(queue, best)
}

/** The best of the interactive class and of all sparse lanes; where there are none of these, that of the first class. */
function highest(queue: ModelQueue, best: Partial<Record<JobClass, Lane>>): Choice {
  let chosen = best.interactive
  for (const jobClass of jobClasses) {
    const lane = best[jobClass]
    if (lane?.sparse && (!chosen || precedes(queue, lane, chosen, 'interactive'))) chosen = lane
  }
  const lane = chosen ?? best.workflow ?? best.async ?? best.batch!
  return { lane, promoted: chosen !== undefined && lane.class !== 'interactive', aged: false }
}

/** Whether a lane goes before another by what their organizations have had in this class. */
function precedes(queue: ModelQueue, lane: Lane, other: Lane, jobClass: JobClass): boolean {
  const [own, others] = [
    accountOf(queue.classes[jobClass], lane.organizationId),
    accountOf(queue.classes[jobClass], other.organizationId),
  ]
  return own.had < others.had || (own.had === others.had && own.servedAt < others.servedAt)
}
