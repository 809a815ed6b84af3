import type { ReferenceOrder } from '../models/fleet.ts'
import { movingAverage } from '../moving-average.ts'
import type { JobClass, WaitingJob, WaitingQuery } from '../store/store.ts'
import { type Account, hasMore, indexIn, insert, type Lane, waitingIn, withdraw } from './lane.ts'
import { classesAbove, entriesAhead, type NextLane, nextLane, positionInLane } from './order.ts'
import { openReferenceOrder } from './reference-order.ts'
import { accountOf, type ModelQueue, openWindows, type QueuedLane, type StoreRead } from './windows.ts'

/** An entry that has a slot. It is charged the typical duration until it ends. */
export interface RunningEntry {
  readonly job: WaitingJob
  /** The accounts charged: that of its class, and that of the class into which it was promoted. */
  readonly accounts: readonly Account[]
  readonly chargedMs: number
  readonly weight: number
  /** When the reference order began it, on the fleet's clock; null if it had not begun it yet. */
  readonly referenceStart: number | null
}

/** The next entry, with the choice that `take` needs; or the store read that is needed to know it. */
export type NextEntry = { job: WaitingJob; choice: NextLane } | { read: StoreRead } | { reading: true }

export interface QueueOptions {
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  /** The organizations whose jobs wait here without being served or counted. Calls are served: they were accepted. */
  suspended?: () => ReadonlySet<string>
  /** How many jobs of one lane are in memory, and about how many in total. */
  window?: number
  most?: number
  /** Monotonic milliseconds. */
  now?: () => number
  /** A lane that has waited this long without being served goes before higher classes. */
  ageingMs?: number
}

/** A lane of stored jobs. `lane`: which one it is, for one that was empty meanwhile is another. `arrived`: how many were added to it. */
export interface WaitingLane extends Pick<WaitingQuery, 'modelId' | 'class' | 'organizationId'> {
  lane: object
  arrived: number
}

/** The assumed duration of an entry before any has run. */
const firstMs = 1_000
const none: ReadonlySet<string> = new Set()
const noEntries: readonly RunningEntry[] = []
/** How many entries are taken between two removals of unused accounts. */
const cleanUpEvery = 64

/**
 * The fair order of everything that waits for a slot: calls, which exist only here, and jobs, of which it holds the
 * first of every organization, class and model. It says which jobs it needs from the store. In memory and bounded;
 * starts nothing. `order.ts` decides which entry is next.
 */
export function openQueue(options: QueueOptions) {
  const {
    weightOf,
    suspended = () => none,
    window = 256,
    most = 65_536,
    now = () => performance.now(),
    ageingMs = 30_000,
  } = options
  const windows = openWindows({ window, most, now })
  const taken = new Map<string, RunningEntry>()
  /** Entries whose turn came and that others overtake, by model and in the order of their turns. Charged as if they ran. */
  const overtaken = new Map<string, RunningEntry[]>()
  /** When the reference order first began each waiting entry: it forgets that once its model is being loaded. */
  const begunAt = new WeakMap<WaitingJob, number>()
  let served = 0

  const weight = (organizationId: string): number => Math.max(1, weightOf(organizationId))
  const typical = (queue: ModelQueue, lane: Lane): number | null =>
    queue.classes[lane.class].accounts.get(lane.organizationId)?.typicalMs ?? queue.typicalMs
  const usual = (queue: ModelQueue, lane: Lane): number => typical(queue, lane) ?? firstMs

  function read(lane: Lane): StoreRead {
    const isOfLane = (job: WaitingJob): boolean =>
      job.modelId === lane.modelId && job.organizationId === lane.organizationId && job.class === lane.class
    const underWay = Array.from(taken.values(), ({ job }) => job).filter(isOfLane)
    return windows.read(lane, new Set(underWay.map(({ id }) => id)))
  }

  /** Ends a running entry: replaces its typical charge with the actual duration. */
  function endEntry(turn: RunningEntry, ranMs: number): QueuedLane | undefined {
    const { job, chargedMs, accounts } = turn
    if (taken.get(job.id) !== turn) return undefined
    taken.delete(job.id)
    const at = windows.lane(job)
    for (const account of accounts) {
      account.used += (ranMs - chargedMs) / turn.weight
      account.underWay--
    }
    at.lane.underWay--
    at.queue.underWay--
    at.lane.reading?.noLongerWaiting.add(job.id)
    return at
  }

  /**
   * Charges an entry the typical duration, until it ends. `inOrder` false: it was chosen out of order, so it does not
   * move the level at which idle organizations continue.
   */
  function charge(
    { queue, lane }: QueuedLane,
    job: WaitingJob,
    {
      classes,
      inOrder = true,
      referenceStart = null,
    }: { classes: readonly JobClass[]; inOrder?: boolean; referenceStart?: number | null },
  ): RunningEntry {
    const accounts = classes.map(name => accountOf(queue.classes[name], lane.organizationId))
    const turn: RunningEntry = {
      job,
      accounts,
      weight: weight(lane.organizationId),
      chargedMs: usual(queue, lane),
      referenceStart,
    }
    lane.reading?.noLongerWaiting.add(job.id)
    served++
    for (const [at, account] of accounts.entries()) {
      const one = queue.classes[classes[at]!]
      if (inOrder) one.floor = Math.max(one.floor, account.used)
      account.used += turn.chargedMs / turn.weight
      account.servedAt = served
      account.underWay++
    }
    lane.underWay++
    lane.sparse = false
    lane.waitingSince = now()
    queue.underWay++
    taken.set(job.id, turn)
    if (served % cleanUpEvery === 0) windows.forgetAccounts(queue)
    return turn
  }

  /** Removes a lane in which nothing waits or runs, and the accounts of a model of which nothing does. */
  function forgetIfIdle(at: QueuedLane | undefined): void {
    if (!at) return
    windows.forgetLane(at)
    windows.rest(at.lane.modelId)
  }

  /** An organization that was idle continues at the level of the others. */
  function rejoin({ queue, lane }: QueuedLane, jobClass: JobClass): void {
    const one = queue.classes[jobClass]
    const account = accountOf(one, lane.organizationId)
    account.used = Math.max(account.used, one.floor)
  }

  function rejoinIfEmpty(at: QueuedLane, jobClass: JobClass): void {
    const { modelId, organizationId } = at.lane
    const other = windows.find({ modelId, organizationId, class: jobClass })
    if (!other || waitingIn(other.lane) === 0) rejoin(at, jobClass)
  }

  function offer(job: WaitingJob): void {
    if (taken.has(job.id)) return
    const at = windows.lane(job)
    const { lane } = at
    if (waitingIn(lane) === 0) {
      rejoin(at, lane.class)
      lane.waitingSince = now()
      lane.sparse = lane.class !== 'interactive' && lane.underWay === 0 && !hasMore(lane)
      // A sparse lane may compete with a higher class, where its organization may have been idle too.
      if (lane.sparse) for (const higher of classesAbove(lane.class)) rejoinIfEmpty(at, higher)
    }
    windows.change(at, () => insert(lane, job, windows.size()))
  }

  /** Those that may run: the jobs of suspended organizations may not. */
  function overtakenOf(modelId: string): readonly RunningEntry[] {
    const all = overtaken.get(modelId)
    if (!all) return noEntries
    return all.filter(({ job }) => job.class === 'interactive' || !suspended().has(job.organizationId))
  }

  function takeOvertaken({ id, modelId }: Pick<WaitingJob, 'id' | 'modelId'>): RunningEntry | undefined {
    const all = overtaken.get(modelId)
    const at = all?.findIndex(({ job }) => job.id === id) ?? -1
    if (!all || at < 0) return undefined
    const [entry] = all.splice(at, 1)
    if (all.length === 0) overtaken.delete(modelId)
    return entry
  }

  return {
    /** Sets the counts of jobs in the store, at the start. */
    begin(backlog: readonly (Pick<WaitingJob, 'modelId' | 'class' | 'organizationId'> & { jobs: number })[]): void {
      for (const { jobs, ...name } of backlog) {
        const at = windows.lane(name)
        windows.change(at, () => {
          at.lane.completeTo = Number.NEGATIVE_INFINITY
          at.lane.inStore = jobs
        })
      }
    },

    /** Adds a waiting entry. Ignores an entry that has a slot. */
    offer,

    /** Removes a waiting entry that did not get a slot. `waited`: whether it was due. */
    remove(job: WaitingJob, waited = true): void {
      const other = takeOvertaken(job)
      if (other) return forgetIfIdle(endEntry(other, 0))
      const at = windows.find(job)
      if (!at || taken.has(job.id)) return
      windows.change(at, () => {
        const { lane } = at
        if (!withdraw(lane, job) && waited && job.rank >= lane.completeTo) lane.inStore = Math.max(0, lane.inStore - 1)
      })
      forgetIfIdle(at)
    },

    /** The next entry, for `take`; undefined: none waits. `jobs` false: calls only. Does not change the order. */
    next(modelId: string, { jobs = true }: { jobs?: boolean } = {}): NextEntry | undefined {
      const queue = windows.queue(modelId)
      const choice =
        queue && nextLane(queue, { now: now(), ageingMs, weightOf: weight, jobs, suspended: suspended(), firstMs })
      if (!choice) return undefined
      const { lane } = choice
      const job = lane.window[0]
      if (job) return { job, choice }
      return lane.reading ? { reading: true } : { read: read(lane) }
    },

    /** Takes the entry that `next` has just returned: it has a slot. */
    take({ job, choice }: Extract<NextEntry, { job: WaitingJob }>): RunningEntry {
      const at = windows.lane(job)
      windows.change(at, () => at.lane.window.shift())
      at.lane.begun.shift()
      const referenceStart = begunAt.get(job) ?? null
      at.queue.turnsSinceAged = choice.aged ? 0 : at.queue.turnsSinceAged + 1
      const classes = choice.promotedTo ? [job.class, choice.promotedTo] : [job.class]
      return charge(at, job, { classes, inOrder: !choice.aged, referenceStart })
    },

    /** Lets others overtake the entry that `next` has just returned, until `takeOvertaken`. It still waits. */
    letOvertake(next: Extract<NextEntry, { job: WaitingJob }>): void {
      const { modelId } = next.job
      overtaken.set(modelId, [...(overtaken.get(modelId) ?? []), this.take(next)])
    },
    overtakenOf,
    /** Takes an entry that others may overtake: it has a slot. Undefined if there is none of that id. */
    takeOvertaken,

    /** Takes a job that still waits, in memory or in the store, out of order; undefined if it does not. */
    takeWaiting(job: WaitingJob): RunningEntry | undefined {
      const other = takeOvertaken(job)
      if (other) return other
      const at = windows.find(job)
      if (!at || taken.has(job.id)) return undefined
      const { lane } = at
      const isInWindow = lane.window[indexIn(lane, job)]?.id === job.id
      if (!isInWindow && !(hasMore(lane) && job.rank >= lane.completeTo)) return undefined
      windows.change(at, () => {
        if (!withdraw(lane, job)) lane.inStore = Math.max(0, lane.inStore - 1)
      })
      return charge(at, job, { classes: [job.class], inOrder: false })
    },

    /** Charges a job that never waited here: it was created together with its claim. */
    chargeNew(job: WaitingJob): RunningEntry {
      const at = windows.lane(job)
      if (waitingIn(at.lane) === 0) rejoin(at, job.class)
      return charge(at, job, { classes: [job.class] })
    },

    /**
     * Ends a running entry and charges its organization for its duration. `whole`: it was not interrupted, so that its
     * duration is typical.
     */
    ran(turn: RunningEntry, ranMs: number, whole = true): void {
      const at = endEntry(turn, ranMs)
      if (!at) return
      const account = accountOf(at.queue.classes[turn.job.class], turn.job.organizationId)
      if (whole) account.typicalMs = movingAverage(account.typicalMs, ranMs)
      if (whole) at.queue.typicalMs = movingAverage(at.queue.typicalMs, ranMs)
      forgetIfIdle(at)
    },

    /** Ends a running entry that did not run and no longer waits. */
    skip: (turn: RunningEntry): void => forgetIfIdle(endEntry(turn, 0)),

    /** Returns a job that did not run to the queue. */
    putBack(turn: RunningEntry): void {
      if (endEntry(turn, 0)) offer(turn.job)
    },

    /** The store read to do next, before an entry has to wait for it; undefined: none. */
    nextRead(): StoreRead | undefined {
      const lane = windows.unread()
      return lane && read(lane)
    },

    /** Adds the jobs that a read has returned. */
    readDone(read: StoreRead, jobs: readonly WaitingJob[]): void {
      windows.readDone(read, jobs)
      windows.rest(read.modelId)
    },

    /** A read has failed: it will be requested again. */
    readFailed: (read: StoreRead): void => windows.readFailed(read),

    /** How many entries would be served before this one in the current state; undefined: it does not wait here. */
    position(job: WaitingJob): number | undefined {
      const at = windows.find(job)
      if (!at) return undefined
      if (taken.has(job.id)) return 0
      const index = positionInLane(at.lane, job)
      if (index === undefined) return undefined
      const step = (lane: Lane) => usual(at.queue, lane) / weight(lane.organizationId)
      return entriesAhead(at.queue, at.lane, { index, suspended: suspended() }, step)
    },

    /** Whether anything waits for the model. */
    waits(modelId: string): boolean {
      const { interactive, background } = this.waiting(modelId)
      return interactive + background > 0
    },
    /** How many entries wait for the model: calls, and jobs. */
    waiting(modelId: string): { interactive: number; background: number } {
      const { interactive = 0, background = 0 } = windows.queue(modelId) ?? {}
      const others = overtakenOf(modelId)
      const calls = others.filter(({ job }) => job.class === 'interactive').length
      return {
        interactive: interactive + calls,
        background: background - windows.storedOf(modelId, suspended()) + others.length - calls,
      }
    },

    /**
     * How long the lane that was served longest ago has waited, milliseconds (of calls if any wait); how many
     * milliseconds of slot time all entries are expected to take, null if unknown; and when the reference order began
     * the first of those that still wait, null if none.
     */
    load(modelId: string, { jobs = true }: { jobs?: boolean } = {}) {
      const queue = windows.queue(modelId)
      const calls = queue !== undefined && queue.interactive > 0
      let [since, workMs, referenceStart]: [number, number | null, number | null] = [now(), 0, null]
      for (const lane of queue?.lanes.values() ?? []) {
        const waiting = waitingIn(lane)
        if (waiting === 0 || (lane.class !== 'interactive' && (!jobs || suspended().has(lane.organizationId)))) continue
        if (!calls || lane.class === 'interactive') since = Math.min(since, lane.waitingSince)
        const [begun] = lane.begun
        if (begun !== undefined) referenceStart = Math.min(begun, referenceStart ?? begun)
        const typicalMs = typical(queue!, lane)
        workMs = workMs === null || typicalMs === null ? null : workMs + waiting * typicalMs
      }
      return { oldestWaitMs: now() - since, workMs, referenceStart }
    },

    /** The order in which the entries would be served whichever models are loaded; jobs only of models that `runsJobs`. */
    reference: (runsJobs: (modelId: string) => boolean): ReferenceOrder =>
      openReferenceOrder({
        queues: windows.all,
        weightOf,
        mayRun: lane =>
          lane.class === 'interactive' || (runsJobs(lane.modelId) && !suspended().has(lane.organizationId)),
        now,
        begun: (job, at) => void (Number.isFinite(begunAt.get(job)) || begunAt.set(job, at)),
        ageingMs,
      }),

    /** The lanes of the model in which jobs wait that may run. */
    lanesOf: (modelId: string): WaitingLane[] =>
      Array.from(windows.queue(modelId)?.lanes.values() ?? []).flatMap(lane =>
        lane.class === 'interactive' ||
        suspended().has(lane.organizationId) ||
        (waitingIn(lane) === 0 && !hasMore(lane))
          ? []
          : { modelId, class: lane.class, organizationId: lane.organizationId, lane, arrived: lane.arrived },
      ),

    /** The models that have waiting entries, or had running ones. */
    models: (): string[] => Array.from(windows.all(), ([modelId]) => modelId),
    /** How many entries wait, how many of them are in memory, and how many lanes there are. */
    stats() {
      const { waiting, held, lanes } = windows.stats()
      const more = [...overtaken.values()].reduce((sum, { length }) => sum + length, 0)
      return { waiting: waiting + more, held: held + more, lanes }
    },
  }
}
export type Queue = ReturnType<typeof openQueue>
