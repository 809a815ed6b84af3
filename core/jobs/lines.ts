import type { JobClass, WaitingJob } from '../store/store.ts'
import { fill, hasMore, type Lane, type LaneKey, newLane, type Reading, waitingIn } from './lane.ts'

/** The jobs that wait for one model, by class and organization. */
export interface Line {
  readonly lanes: Map<string, Lane>
  /** What the one served last had had before it: who comes back after a while begins here, with no savings. */
  floor: number
  /** How long its jobs take, learnt; null before the first one. */
  typicalMs: number | null
  waiting: number
  underWay: number
}

/** A look into the store that is needed: `found` or `missed` is the answer to it. */
export interface Want {
  readonly modelId: string
  readonly class: JobClass
  readonly organizationId: string
  readonly from: number
  readonly limit: number
  readonly reading: Reading
}

const smallestWindow = 8

const keyOf = (key: Omit<LaneKey, 'modelId'>): string => `${key.class} ${key.organizationId}`

/**
 * What is in memory of what waits: for each model, class and organization the first jobs, and what is to be read from the
 * store next. Bounded: the more organizations wait, the less is held of each.
 */
export function openLines({ window, most }: { window: number; most: number }) {
  const lines = new Map<string, Line>()
  /** Lanes that are to be read. */
  const thirsty = new Set<Lane>()
  let lanes = 0

  const size = () => Math.min(window, Math.max(smallestWindow, Math.floor(most / Math.max(1, lanes))))

  function find(key: LaneKey): { line: Line; lane: Lane } | undefined {
    const line = lines.get(key.modelId)
    const lane = line?.lanes.get(keyOf(key))
    return line && lane ? { line, lane } : undefined
  }

  function drop(line: Line, lane: Lane): void {
    line.lanes.delete(keyOf(lane))
    thirsty.delete(lane)
    lanes--
  }

  /** Changes a lane, and keeps the figures of its line. */
  function change({ line, lane }: { line: Line; lane: Lane }, how: () => void): void {
    const before = waitingIn(lane)
    how()
    line.waiting += waitingIn(lane) - before
    if (hasMore(lane) && !lane.reading && lane.window.length < size() / 2) thirsty.add(lane)
  }

  return {
    size,
    find,
    drop,
    change,
    line: (modelId: string): Line | undefined => lines.get(modelId),
    all: (): Iterable<[string, Line]> => lines,

    /** The lane, which is made where there is none. */
    lane(key: LaneKey): { line: Line; lane: Lane } {
      let line = lines.get(key.modelId)
      if (!line)
        lines.set(key.modelId, (line = { lanes: new Map(), floor: 0, typicalMs: null, waiting: 0, underWay: 0 }))
      let lane = line.lanes.get(keyOf(key))
      if (!lane) {
        line.lanes.set(keyOf(key), (lane = newLane(key, line.floor)))
        lanes++
      }
      return { line, lane }
    },

    /** Where nobody waits and nothing runs, nobody is kept waiting: all begin anew. What jobs take is learnt already. */
    rest(modelId: string): void {
      const line = lines.get(modelId)
      if (!line || line.waiting > 0 || line.underWay > 0) return
      for (const lane of line.lanes.values()) if (hasMore(lane)) return
      for (const lane of line.lanes.values()) drop(line, lane)
      line.floor = 0
      if (line.typicalMs === null) lines.delete(modelId)
    },

    /** Begins a look at what comes after the window; `underWay`: ids that may be found although they do not wait. */
    read(lane: Lane, underWay: Iterable<string>): Want {
      thirsty.delete(lane)
      lane.reading = { came: Number.POSITIVE_INFINITY, gone: new Set(underWay) }
      return {
        modelId: lane.modelId,
        class: lane.class,
        organizationId: lane.organizationId,
        from: Math.max(lane.through, Number.MIN_SAFE_INTEGER),
        // Those at the end of the window are found again.
        limit: Math.max(1, size() - lane.window.length) + lane.window.filter(job => job.rank >= lane.through).length,
        reading: lane.reading,
      }
    },

    /** A lane that is to be read before anybody has to wait for it. */
    thirsty: (): Lane | undefined => thirsty.values().next().value,

    found(want: Want, jobs: readonly WaitingJob[]): void {
      const at = find(want)
      if (at) change(at, () => fill(at.lane, want.reading, jobs, jobs.length < want.limit))
    },

    missed(want: Want): void {
      const lane = find(want)?.lane
      if (lane?.reading !== want.reading) return
      lane.reading = null
      thirsty.add(lane)
    },

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
