import type { WaitingJob } from '../store/store.ts'
import { fill, hasMore, insert, type Lane, newLane, type Reading, waitingIn, withdraw } from './lane.ts'
import { blend } from './pace.ts'
import { indexIn, jobsAhead } from './position.ts'

/** A job whose turn has come. It is charged by what its organization's jobs usually take, until it has ended. */
export interface Turn {
  readonly job: WaitingJob
  readonly chargedMs: number
  readonly weight: number
}

/** A look into the store that the queue needs: `found` or `missed` is the answer to it. */
export interface Want {
  readonly modelId: string
  readonly organizationId: string
  readonly from: number
  readonly limit: number
  readonly reading: Reading
}

/** The jobs that wait for one model. */
interface Line {
  readonly lanes: Map<string, Lane>
  /** What the one served last had had before it: who comes back after a while begins here, with no savings. */
  floor: number
  typicalMs: number | null
  waiting: number
  underWay: number
}

export interface QueueWish {
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  /** How many jobs of one organization and model are held in memory, and about how many in all. */
  window?: number
  most?: number
}

/** What a job is taken to cost before any has run. */
const firstMs = 1_000
const smallestWindow = 8

/**
 * The fair order of everything that waits. Pure and bounded: it holds the first jobs of every organization and model
 * and says what it needs from the store. The order is deficit round robin with rounds as short as can be: each
 * organization is charged the GPU time of its jobs, divided by its weight, and the one that has had least is next.
 */
export function openQueue({ weightOf, window = 256, most = 65_536 }: QueueWish) {
  const lines = new Map<string, Line>()
  const taken = new Map<string, Turn>()
  /** Lanes that are to be read. */
  const thirsty = new Set<Lane>()
  let lanes = 0
  let turns = 0

  const size = () => Math.max(smallestWindow, Math.min(window, Math.floor(most / Math.max(1, lanes))))

  function laneOf(modelId: string, organizationId: string): { line: Line; lane: Lane } {
    let line = lines.get(modelId)
    if (!line) lines.set(modelId, (line = { lanes: new Map(), floor: 0, typicalMs: null, waiting: 0, underWay: 0 }))
    let lane = line.lanes.get(organizationId)
    if (!lane) {
      line.lanes.set(organizationId, (lane = newLane(modelId, organizationId, line.floor)))
      lanes++
    }
    return { line, lane }
  }

  function drop(line: Line, lane: Lane): void {
    line.lanes.delete(lane.organizationId)
    thirsty.delete(lane)
    lanes--
  }

  /** Changes a lane, and keeps the figures of its line. */
  function changing(line: Line, lane: Lane, change: () => void): void {
    const before = waitingIn(lane)
    change()
    line.waiting += waitingIn(lane) - before
    if (hasMore(lane) && !lane.reading && lane.window.length < size() / 2) thirsty.add(lane)
  }

  const expected = (line: Line, lane: Lane): number => lane.typicalMs ?? line.typicalMs ?? firstMs

  function nextLane(line: Line): Lane | undefined {
    let best: Lane | undefined
    for (const lane of line.lanes.values()) {
      if (waitingIn(lane) === 0 && !hasMore(lane)) {
        // Nothing waits and nothing is owed.
        if (lane.underWay === 0 && lane.had <= line.floor) drop(line, lane)
      } else if (!best || lane.had < best.had || (lane.had === best.had && lane.servedAt < best.servedAt)) best = lane
    }
    return best
  }

  function read(lane: Lane): Want {
    thirsty.delete(lane)
    lane.reading = { stirred: false, gone: new Set() }
    for (const [id, { job }] of taken)
      if (job.modelId === lane.modelId && job.organizationId === lane.organizationId) lane.reading.gone.add(id)
    return {
      modelId: lane.modelId,
      organizationId: lane.organizationId,
      from: Math.max(lane.through, Number.MIN_SAFE_INTEGER),
      // The last one of the window is found again.
      limit: Math.max(1, size() - lane.window.length) + 1,
      reading: lane.reading,
    }
  }

  /** The end of a turn, however it ended. */
  function over(turn: Turn, ranMs: number): { line: Line; lane: Lane } | undefined {
    const { job, weight, chargedMs } = turn
    if (taken.get(job.id) !== turn) return undefined
    taken.delete(job.id)
    const { line, lane } = laneOf(job.modelId, job.organizationId)
    lane.had += (ranMs - chargedMs) / weight
    lane.underWay--
    line.underWay--
    lane.reading?.gone.add(job.id)
    return { line, lane }
  }

  function forget(modelId: string, line: Line): void {
    if (line.waiting > 0 || line.underWay > 0) return
    for (const lane of line.lanes.values()) if (hasMore(lane) || lane.reading) return
    for (const lane of line.lanes.values()) drop(line, lane)
    // With nobody there, nobody was kept waiting: all begin anew. What jobs take is learnt already.
    line.floor = 0
    if (line.typicalMs === null) lines.delete(modelId)
  }

  function offer(job: WaitingJob): void {
    if (taken.has(job.id)) return
    const { line, lane } = laneOf(job.modelId, job.organizationId)
    if (waitingIn(lane) === 0) lane.had = Math.max(lane.had, line.floor)
    changing(line, lane, () => insert(lane, job, size()))
  }

  return {
    /** What waits in the store when all begins. */
    begin(backlog: readonly { modelId: string; organizationId: string; jobs: number }[]): void {
      for (const { modelId, organizationId, jobs } of backlog) {
        const { line, lane } = laneOf(modelId, organizationId)
        changing(line, lane, () => {
          lane.through = Number.NEGATIVE_INFINITY
          lane.beyond = jobs
        })
      }
    },

    /** A job that waits from now on. One that is known is passed over. */
    offer,

    /** A job that does not wait any more, by no turn of ours. `waited`: whether it was due. */
    remove(job: WaitingJob, waited = true): void {
      const line = lines.get(job.modelId)
      const lane = line?.lanes.get(job.organizationId)
      if (!line || !lane || taken.has(job.id)) return
      changing(line, lane, () => {
        if (!withdraw(lane, job) && waited && job.rank >= lane.through) lane.beyond = Math.max(0, lane.beyond - 1)
      })
      forget(job.modelId, line)
    },

    /** The job whose turn it is, or what has to be read before that can be said; undefined: none waits. */
    next(modelId: string): { turn: Turn } | { read: Want } | { reading: true } | undefined {
      const line = lines.get(modelId)
      const lane = line && nextLane(line)
      if (!lane) return undefined
      const job = lane.window[0]
      if (!job) return lane.reading ? { reading: true } : { read: read(lane) }
      const weight = Math.max(1, weightOf(lane.organizationId))
      const turn: Turn = { job, weight, chargedMs: expected(line, lane) }
      changing(line, lane, () => lane.window.shift())
      lane.reading?.gone.add(job.id)
      line.floor = Math.max(line.floor, lane.had)
      lane.had += turn.chargedMs / weight
      lane.servedAt = ++turns
      lane.underWay++
      line.underWay++
      taken.set(job.id, turn)
      return { turn }
    },

    /** The job of the turn has run for so long; its organization is charged that. */
    ran(turn: Turn, ranMs: number): void {
      const at = over(turn, ranMs)
      if (!at) return
      at.lane.typicalMs = blend(at.lane.typicalMs, ranMs)
      at.line.typicalMs = blend(at.line.typicalMs, ranMs)
      forget(turn.job.modelId, at.line)
    },

    /** The job of the turn did not run and does not wait any more. */
    passed(turn: Turn): void {
      const at = over(turn, 0)
      if (at) forget(turn.job.modelId, at.line)
    },

    /** The job of the turn did not run and waits again. */
    putBack(turn: Turn): void {
      if (over(turn, 0)) offer(turn.job)
    },

    /** What is to be read next, so that nobody has to wait for it; undefined: nothing is. */
    wanted(): Want | undefined {
      for (const lane of thirsty) return read(lane)
      return undefined
    },

    /** The answer to a want. */
    found({ modelId, organizationId, reading, limit }: Want, jobs: readonly WaitingJob[]): void {
      const line = lines.get(modelId)
      const lane = line?.lanes.get(organizationId)
      if (!line || !lane) return
      changing(line, lane, () => fill(lane, reading, jobs, jobs.length < limit))
      forget(modelId, line)
    },

    /** A want that could not be answered: it is asked again. */
    missed({ modelId, organizationId, reading }: Want): void {
      const lane = lines.get(modelId)?.lanes.get(organizationId)
      if (!lane || lane.reading !== reading) return
      lane.reading = null
      thirsty.add(lane)
    },

    /** How many jobs would be taken before this one as things are; undefined: it does not wait here. */
    position(job: WaitingJob): number | undefined {
      const line = lines.get(job.modelId)
      const lane = line?.lanes.get(job.organizationId)
      if (!line || !lane) return undefined
      if (taken.has(job.id)) return 0
      const at = indexIn(lane, job)
      if (at === undefined) return undefined
      return jobsAhead(
        lane,
        at,
        [...line.lanes.values()],
        other => expected(line, other) / Math.max(1, weightOf(other.organizationId)),
      )
    },

    waiting: (modelId: string): number => lines.get(modelId)?.waiting ?? 0,
    /** The models for which jobs wait or run. */
    models: (): string[] => [...lines.keys()],
    /** How many jobs wait, and how many of them are in memory. */
    stats() {
      let [waiting, held] = [0, 0]
      for (const line of lines.values()) {
        waiting += line.waiting
        for (const lane of line.lanes.values()) held += lane.window.length
      }
      return { waiting, held, lanes }
    },
  }
}
export type Queue = ReturnType<typeof openQueue>
