import { type JobClass, jobClasses, type WaitingJob, type WaitingQuery } from '../store/store.ts'
import { type Account, fill, hasMore, type Lane, newLane, type Reading, waitingIn } from './lane.ts'

/** Everything that waits for one model. */
export interface ModelQueue {
  /** By class and organization. */
  readonly lanes: Map<string, Lane>
  readonly classes: Record<JobClass, ClassState>
  /** Milliseconds that its entries typically take; null before the first one has ended. */
  typicalMs: number | null
  interactive: number
  background: number
  underWay: number
  /** Entries taken since a lane was last served for having waited too long. */
  turnsSinceAged: number
}

/** The accounts of one class. */
export interface ClassState {
  readonly accounts: Map<string, Account>
  /** What the account served last had used before: an idle organization continues here, without savings. */
  floor: number
}

/** A lane with the queue it belongs to. */
export interface QueuedLane {
  queue: ModelQueue
  lane: Lane
}

/** A read of the store that is needed; answer it with `readDone` or `readFailed`. */
export interface StoreRead extends WaitingQuery {
  readonly reading: Reading
}

const minWindow = 8
const newClass = (): ClassState => ({ accounts: new Map(), floor: 0 })
const keyOf = (jobClass: JobClass, organizationId: string): string => `${jobClass} ${organizationId}`

/** The account of an organization in a class, created at the floor if missing. */
export function accountOf({ accounts, floor }: ClassState, organizationId: string): Account {
  let account = accounts.get(organizationId)
  if (!account) accounts.set(organizationId, (account = { used: floor, servedAt: 0, underWay: 0, typicalMs: null }))
  return account
}

/**
 * The part of the queue that is in memory: for each model, class and organization the first entries, and which store
 * read is needed next. Bounded: the more lanes there are, the fewer entries each holds.
 */
export function openWindows({ window, most, now }: { window: number; most: number; now: () => number }) {
  const queues = new Map<string, ModelQueue>()
  /** Lanes to read from the store. */
  const unread = new Set<Lane>()
  let lanes = 0

  const size = () => Math.min(window, Math.max(minWindow, Math.floor(most / Math.max(1, lanes))))

  function find({ modelId, class: jobClass, organizationId }: LaneName): QueuedLane | undefined {
    const queue = queues.get(modelId)
    const lane = queue?.lanes.get(keyOf(jobClass, organizationId))
    return queue && lane ? { queue, lane } : undefined
  }

  function drop(queue: ModelQueue, lane: Lane): void {
    queue.lanes.delete(keyOf(lane.class, lane.organizationId))
    unread.delete(lane)
    lanes--
  }

  return {
    size,
    find,
    drop,
    queue: (modelId: string): ModelQueue | undefined => queues.get(modelId),
    all: (): Iterable<[string, ModelQueue]> => queues,

    /** How many stored jobs of these organizations wait for the model. */
    storedOf(modelId: string, organizations: ReadonlySet<string>): number {
      let waiting = 0
      for (const organizationId of organizations)
        for (const jobClass of jobClasses) {
          const at = jobClass === 'interactive' ? undefined : find({ modelId, class: jobClass, organizationId })
          if (at) waiting += waitingIn(at.lane)
        }
      return waiting
    },

    /** Changes a lane by `how`, and updates the counts of its queue. */
    change({ queue, lane }: QueuedLane, how: () => void): void {
      const before = waitingIn(lane)
      how()
      const more = waitingIn(lane) - before
      if (lane.class === 'interactive') queue.interactive += more
      else queue.background += more
      if (hasMore(lane) && !lane.reading && lane.window.length < size() / 2) unread.add(lane)
    },

    /** The lane of that name, created if missing. */
    lane({ modelId, class: jobClass, organizationId }: LaneName): QueuedLane {
      let queue = queues.get(modelId)
      if (!queue) {
        const classes = { interactive: newClass(), workflow: newClass(), async: newClass(), batch: newClass() }
        const counts = { interactive: 0, background: 0, underWay: 0, turnsSinceAged: 0 }
        queues.set(modelId, (queue = { lanes: new Map(), classes, typicalMs: null, ...counts }))
      }
      const key = keyOf(jobClass, organizationId)
      let lane = queue.lanes.get(key)
      if (!lane) {
        queue.lanes.set(key, (lane = newLane(modelId, jobClass, organizationId, now())))
        lanes++
      }
      return { queue, lane }
    },

    /** Removes a lane without waiting and running entries. The account of its organization is kept. */
    forgetLane({ queue, lane }: QueuedLane): void {
      if (waitingIn(lane) === 0 && !hasMore(lane) && lane.underWay === 0 && !lane.reading) drop(queue, lane)
    },

    /** Removes the accounts of organizations that have no waiting and no running entries and no debt. */
    forgetAccounts(queue: ModelQueue): void {
      for (const jobClass of jobClasses) {
        const { accounts, floor } = queue.classes[jobClass]
        for (const [id, { used, underWay }] of accounts)
          if (underWay === 0 && used <= floor && !queue.lanes.has(keyOf(jobClass, id))) accounts.delete(id)
      }
    },

    /** Resets all accounts of a model without waiting and running entries. Typical durations are kept. */
    rest(modelId: string): void {
      const queue = queues.get(modelId)
      if (!queue || queue.interactive + queue.background + queue.underWay > 0) return
      for (const lane of queue.lanes.values()) if (hasMore(lane)) return
      for (const lane of queue.lanes.values()) drop(queue, lane)
      for (const one of Object.values(queue.classes)) {
        one.accounts.clear()
        one.floor = 0
      }
      if (queue.typicalMs === null) queues.delete(modelId)
    },

    /** Starts a read of the jobs after the window; `underWay`: ids that may be found although they do not wait. */
    read(lane: Lane, underWay: Iterable<string>): StoreRead {
      unread.delete(lane)
      lane.reading = { lowestArrival: Number.POSITIVE_INFINITY, noLongerWaiting: new Set(underWay) }
      const { modelId, class: jobClass, organizationId } = lane
      return {
        modelId,
        class: jobClass,
        organizationId,
        from: Math.max(lane.completeTo, Number.MIN_SAFE_INTEGER),
        // The read returns the jobs at the end of the window again.
        limit: Math.max(1, size() - lane.window.length) + lane.window.filter(job => job.rank >= lane.completeTo).length,
        reading: lane.reading,
      }
    },

    /** A lane to read before an entry has to wait for it. */
    unread: (): Lane | undefined => unread.values().next().value,

    readDone(read: StoreRead, jobs: readonly WaitingJob[]): void {
      const at = find(read)
      if (at) this.change(at, () => fill(at.lane, read.reading, jobs, jobs.length < read.limit))
    },

    readFailed(read: StoreRead): void {
      const lane = find(read)?.lane
      if (lane?.reading !== read.reading) return
      lane.reading = null
      unread.add(lane)
    },

    stats() {
      let [waiting, held] = [0, 0]
      for (const queue of queues.values()) {
        waiting += queue.interactive + queue.background
        for (const lane of queue.lanes.values()) held += lane.window.length
      }
      return { waiting, held, lanes }
    },
  }
}

/** Identifies a lane: every waiting entry has these fields. */
export type LaneName = Pick<WaitingJob, 'modelId' | 'class' | 'organizationId'>
