import { movingAverage as blend } from '../moving-average.ts'
import type { Backlog, WaitingJob } from '../store/store.ts'
import { hasMore, insert, type Lane, waitingIn, withdraw } from './lane.ts'
import { type Line, openLines, type Want } from './lines.ts'
import { indexIn, jobsAhead } from './position.ts'

/** A job whose turn has come. It is charged by what its organization's jobs usually take, until it has ended. */
export interface Turn {
  readonly job: WaitingJob
  readonly chargedMs: number
  readonly weight: number
}

/** Whose turn it is, or what has to be known before that can be said. */
export type Next = { turn: Turn } | { read: Want } | { reading: true }

export interface QueueWish {
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  /** How many jobs of one organization and model are held in memory, and about how many in all. */
  window?: number
  most?: number
}

/** What a job is taken to cost before any has run. */
const firstMs = 1_000

/**
 * The fair order of everything that waits. Pure and bounded: it holds the first jobs of every organization and model
 * and says what it needs from the store. The order is deficit round robin with rounds as short as can be: each
 * organization is charged the GPU time of its jobs, divided by its weight, and the one that has had least is next.
 */
export function openQueue({ weightOf, window = 256, most = 65_536 }: QueueWish) {
  const lines = openLines({ window, most })
  const taken = new Map<string, Turn>()
  let turns = 0

  const weight = (lane: Lane): number => Math.max(1, weightOf(lane.organizationId))
  const usual = (line: Line, lane: Lane): number => lane.typicalMs ?? line.typicalMs ?? firstMs

  /** Of those that wait the one that has had least; of two that have had the same, the one served longer ago. */
  function nextLane(line: Line): Lane | undefined {
    let best: Lane | undefined
    for (const lane of line.lanes.values()) {
      if (waitingIn(lane) === 0 && !hasMore(lane)) {
        // Nothing waits and nothing is owed.
        if (lane.underWay === 0 && lane.had <= line.floor) lines.drop(line, lane)
      } else if (!best || lane.had < best.had || (lane.had === best.had && lane.servedAt < best.servedAt)) best = lane
    }
    return best
  }

  function read(lane: Lane): Want {
    const underWay = [...taken.values()].filter(
      ({ job }) =>
        job.modelId === lane.modelId && job.class === lane.class && job.organizationId === lane.organizationId,
    )
    return lines.read(
      lane,
      underWay.map(({ job }) => job.id),
    )
  }

  /** The end of a turn, however it ended: what was charged for it becomes what it took. */
  function over(turn: Turn, ranMs: number): { line: Line; lane: Lane } | undefined {
    const { job, chargedMs } = turn
    if (taken.get(job.id) !== turn) return undefined
    taken.delete(job.id)
    const at = lines.lane(job)
    at.lane.had += (ranMs - chargedMs) / turn.weight
    at.lane.underWay--
    at.line.underWay--
    at.lane.reading?.gone.add(job.id)
    return at
  }

  /** It is the turn of this job: it is charged what its like usually take, until it has ended. */
  function serve(line: Line, lane: Lane, job: WaitingJob): Turn {
    const turn: Turn = { job, weight: weight(lane), chargedMs: usual(line, lane) }
    lane.reading?.gone.add(job.id)
    line.floor = Math.max(line.floor, lane.had)
    lane.had += turn.chargedMs / turn.weight
    lane.servedAt = ++turns
    lane.underWay++
    line.underWay++
    taken.set(job.id, turn)
    return turn
  }

  function offer(job: WaitingJob): void {
    if (taken.has(job.id)) return
    const at = lines.lane(job)
    if (waitingIn(at.lane) === 0) at.lane.had = Math.max(at.lane.had, at.line.floor)
    lines.change(at, () => insert(at.lane, job, lines.size()))
  }

  return {
    /** What waits in the store when all begins. */
    begin(backlog: readonly Backlog[]): void {
      for (const { jobs, ...key } of backlog) {
        const at = lines.lane(key)
        lines.change(at, () => {
          at.lane.through = Number.NEGATIVE_INFINITY
          at.lane.beyond = jobs
        })
      }
    },

    /** A job that waits from now on. One that is known is passed over. */
    offer,

    /** A job that does not wait any more, by no turn of ours. `waited`: whether it was due. */
    remove(job: WaitingJob, waited = true): void {
      const at = lines.find(job)
      if (!at || taken.has(job.id)) return
      lines.change(at, () => {
        const { lane } = at
        if (!withdraw(lane, job) && waited && job.rank >= lane.through) lane.beyond = Math.max(0, lane.beyond - 1)
      })
      lines.rest(job.modelId)
    },

    /** The job whose turn it is; undefined: none waits. */
    next(modelId: string): Next | undefined {
      const line = lines.line(modelId)
      const lane = line && nextLane(line)
      if (!lane) return undefined
      const job = lane.window[0]
      if (!job) return lane.reading ? { reading: true } : { read: read(lane) }
      lines.change({ line, lane }, () => lane.window.shift())
      return { turn: serve(line, lane, job) }
    },

    /** A job that never waited here: its turn has come with its making. */
    take(job: WaitingJob): Turn {
      const { line, lane } = lines.lane(job)
      if (waitingIn(lane) === 0) lane.had = Math.max(lane.had, line.floor)
      return serve(line, lane, job)
    },

    /**
     * The job of the turn has run for so long, and its organization is charged that. `whole`: it was not interrupted,
     * so that others may be expected to take as long.
     */
    ran(turn: Turn, ranMs: number, whole = true): void {
      const at = over(turn, ranMs)
      if (!at) return
      if (whole) at.lane.typicalMs = blend(at.lane.typicalMs, ranMs)
      if (whole) at.line.typicalMs = blend(at.line.typicalMs, ranMs)
      lines.rest(turn.job.modelId)
    },

    /** The job of the turn did not run and does not wait any more. */
    passed(turn: Turn): void {
      if (over(turn, 0)) lines.rest(turn.job.modelId)
    },

    /** The job of the turn did not run and waits again. */
    putBack(turn: Turn): void {
      if (over(turn, 0)) offer(turn.job)
    },

    /** What is to be read next, so that nobody has to wait for it; undefined: nothing is. */
    wanted(): Want | undefined {
      const lane = lines.thirsty()
      return lane && read(lane)
    },

    /** The answer to a want. */
    found(want: Want, jobs: readonly WaitingJob[]): void {
      lines.found(want, jobs)
      lines.rest(want.modelId)
    },

    /** A want that could not be answered: it is asked again. */
    missed: (want: Want): void => lines.missed(want),

    /** How many jobs would be taken before this one as things are; undefined: it does not wait here. */
    position(job: WaitingJob): number | undefined {
      const at = lines.find(job)
      if (!at) return undefined
      if (taken.has(job.id)) return 0
      const index = indexIn(at.lane, job)
      if (index === undefined) return undefined
      return jobsAhead(at.lane, index, at.line.lanes.values(), lane => usual(at.line, lane) / weight(lane))
    },

    waiting: (modelId: string): number => lines.line(modelId)?.waiting ?? 0,
    /** The models for which jobs wait or have run. */
    models: (): string[] => Array.from(lines.all(), ([modelId]) => modelId),
    /** How many jobs wait, how many of them are in memory, and of how many pairs of model and organization. */
    stats: () => lines.stats(),
  }
}
export type Queue = ReturnType<typeof openQueue>

/** What the queue needs to know of a job. */
export const waitingOf = (job: WaitingJob): WaitingJob => ({
  id: job.id,
  organizationId: job.organizationId,
  modelId: job.modelId,
  class: job.class,
  rank: job.rank,
})
