import { movingAverage } from '../moving-average.ts'
import type { JobClass, WaitingJob } from '../store/store.ts'
import { type Account, hasMore, insert, type Lane, waitingIn, withdraw } from './lane.ts'
import { type Choice, classesAbove, nextLane } from './order.ts'
import { entriesAhead, positionInLane } from './position.ts'
import { accountOf, type ModelQueue, openWindows, type QueuedLane, type StoreRead } from './windows.ts'

/** An entry that has a slot. It is charged what its like usually take, until it has ended. */
export interface RunningEntry {
  readonly job: WaitingJob
  /** What is charged: the account of its class, and that of the class in which it was promoted. */
  readonly accounts: readonly Account[]
  readonly chargedMs: number
  readonly weight: number
}

/** The entry that is next, with what `begin` needs to know of it; or what has to be read before that can be said. */
export type NextEntry = { job: WaitingJob; choice: Choice } | { read: StoreRead } | { reading: true }

export interface QueueOptions {
  /** The share of an organization, 1 or more. */
  weightOf: (organizationId: string) => number
  /** How many jobs of one lane are held in memory, and about how many in all. */
  window?: number
  most?: number
  /** Monotonic milliseconds. */
  now?: () => number
  /** A lane that has waited so long without being served goes before higher classes. */
  ageingMs?: number
}

/** What an entry is taken to cost before any has run. */
const firstMs = 1_000
/** Turns between two removals of accounts that are of no use any more. */
const forgetEvery = 64

/**
 * The fair order of everything that waits for a slot: calls, which are here alone, and jobs, of which it holds the first
 * of every organization, class and model and says what it needs from the store. In memory and bounded; it starts
 * nothing. `order.ts` decides whose turn it is.
 */
export function openQueue(options: QueueOptions) {
  const { weightOf, window = 256, most = 65_536, now = () => performance.now(), ageingMs = 30_000 } = options
  const windows = openWindows({ window, most, now })
  const taken = new Map<string, RunningEntry>()
  let turns = 0

  const weight = (organizationId: string): number => Math.max(1, weightOf(organizationId))
  const typical = (queue: ModelQueue, lane: Lane): number | null =>
    queue.classes[lane.class].accounts.get(lane.organizationId)?.typicalMs ?? queue.typicalMs
  const usual = (queue: ModelQueue, lane: Lane): number => typical(queue, lane) ?? firstMs

  function read(lane: Lane): StoreRead {
    const underWay = [...taken.values()].filter(
      ({ job }) =>
        job.modelId === lane.modelId && job.organizationId === lane.organizationId && job.class === lane.class,
    )
    return windows.read(
      lane,
      underWay.map(({ job }) => job.id),
    )
  }

  /** Ends a turn: what was charged for it becomes what it took. */
  function over(turn: RunningEntry, ranMs: number): QueuedLane | undefined {
    const { job, chargedMs, accounts } = turn
    if (taken.get(job.id) !== turn) return undefined
    taken.delete(job.id)
    const at = windows.lane(job)
    for (const account of accounts) {
      account.had += (ranMs - chargedMs) / turn.weight
      account.underWay--
    }
    at.lane.underWay--
    at.queue.underWay--
    at.lane.reading?.gone.add(job.id)
    return at
  }

  /**
   * Charges an entry what its like usually take, until it has ended. `inOrder` false: it was not its organization's turn,
   * which says nothing about where others begin.
   */
  function charge(
    { queue, lane }: QueuedLane,
    job: WaitingJob,
    { classes, inOrder = true }: { classes: readonly JobClass[]; inOrder?: boolean },
  ): RunningEntry {
    const accounts = classes.map(name => accountOf(queue.classes[name], lane.organizationId))
    const turn: RunningEntry = { job, accounts, weight: weight(lane.organizationId), chargedMs: usual(queue, lane) }
    lane.reading?.gone.add(job.id)
    turns++
    for (const [at, account] of accounts.entries()) {
      const one = queue.classes[classes[at]!]
      if (inOrder) one.floor = Math.max(one.floor, account.had)
      account.had += turn.chargedMs / turn.weight
      account.servedAt = turns
      account.underWay++
    }
    lane.underWay++
    lane.sparse = false
    lane.waitingSince = now()
    queue.underWay++
    taken.set(job.id, turn)
    if (turns % forgetEvery === 0) windows.forgetAccounts(queue)
    return turn
  }

  /** An organization that comes back begins where the others are. */
  function rejoin({ queue, lane }: QueuedLane, jobClass: JobClass): void {
    const one = queue.classes[jobClass]
    const account = accountOf(one, lane.organizationId)
    account.had = Math.max(account.had, one.floor)
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
      // It may compete with a higher class, where its organization may be away as well.
      if (lane.sparse) for (const higher of classesAbove(lane.class)) rejoinIfEmpty(at, higher)
    }
    windows.change(at, () => insert(lane, job, windows.size()))
  }

  return {
    /** Counts what waits in the store when all begins. */
    begin(backlog: readonly (Pick<WaitingJob, 'modelId' | 'class' | 'organizationId'> & { jobs: number })[]): void {
      for (const { jobs, ...name } of backlog) {
        const at = windows.lane(name)
        windows.change(at, () => {
          at.lane.through = Number.NEGATIVE_INFINITY
          at.lane.beyond = jobs
        })
      }
    },

    /** Adds an entry that waits from now on. One that is known is passed over. */
    offer,

    /** Removes an entry that does not wait any more, by no turn of ours. `waited`: whether it was due. */
    remove(job: WaitingJob, waited = true): void {
      const at = windows.find(job)
      if (!at || taken.has(job.id)) return
      windows.change(at, () => {
        const { lane } = at
        if (!withdraw(lane, job) && waited && job.rank >= lane.through) lane.beyond = Math.max(0, lane.beyond - 1)
      })
      windows.forgetLane(at)
      windows.rest(job.modelId)
    },

    /** The entry whose turn it is, for `take`; undefined: none waits. `jobs` false: calls only. Changes no order. */
    next(modelId: string, { jobs = true }: { jobs?: boolean } = {}): NextEntry | undefined {
      const queue = windows.queue(modelId)
      const choice = queue && nextLane(queue, { now: now(), ageingMs, weightOf: weight, jobs, firstMs })
      if (!choice) return undefined
      const { lane } = choice
      const job = lane.window[0]
      if (job) return { job, choice }
      return lane.reading ? { reading: true } : { read: read(lane) }
    },

    /** Takes the entry that `next` has just named: it has a slot. */
    take({ job, choice }: Extract<NextEntry, { job: WaitingJob }>): RunningEntry {
      const at = windows.lane(job)
      windows.change(at, () => at.lane.window.shift())
      at.queue.turnsSinceAged = choice.aged ? 0 : at.queue.turnsSinceAged + 1
      const classes = choice.promotedTo ? [job.class, choice.promotedTo] : [job.class]
      return charge(at, job, { classes, inOrder: !choice.aged })
    },

    /** Charges a job that never waited here: its turn has come with its making. */
    takeNew(job: WaitingJob): RunningEntry {
      const at = windows.lane(job)
      if (waitingIn(at.lane) === 0) rejoin(at, job.class)
      return charge(at, job, { classes: [job.class] })
    },

    /**
     * The entry of the turn has run for so long, and its organization is charged that. `whole`: it was not interrupted,
     * so that others may be expected to take as long.
     */
    ran(turn: RunningEntry, ranMs: number, whole = true): void {
      const at = over(turn, ranMs)
      if (!at) return
      const account = accountOf(at.queue.classes[turn.job.class], turn.job.organizationId)
      if (whole) account.typicalMs = movingAverage(account.typicalMs, ranMs)
      if (whole) at.queue.typicalMs = movingAverage(at.queue.typicalMs, ranMs)
      windows.forgetLane(at)
      windows.rest(turn.job.modelId)
    },

    /** The entry of the turn did not run and does not wait any more. */
    passed(turn: RunningEntry): void {
      const at = over(turn, 0)
      if (!at) return
      windows.forgetLane(at)
      windows.rest(turn.job.modelId)
    },

    /** The job of the turn did not run and waits again. */
    putBack(turn: RunningEntry): void {
      if (over(turn, 0)) offer(turn.job)
    },

    /** What is to be read next, so that nothing has to wait for it; undefined: nothing is. */
    wanted(): StoreRead | undefined {
      const lane = windows.unread()
      return lane && read(lane)
    },

    /** The answer to a read. */
    found(read: StoreRead, jobs: readonly WaitingJob[]): void {
      windows.found(read, jobs)
      windows.rest(read.modelId)
    },

    /** A read that could not be answered: it is asked again. */
    missed: (read: StoreRead): void => windows.missed(read),

    /** How many entries would be served before this one as things are; undefined: it does not wait here. */
    position(job: WaitingJob): number | undefined {
      const at = windows.find(job)
      if (!at) return undefined
      if (taken.has(job.id)) return 0
      const index = positionInLane(at.lane, job)
      if (index === undefined) return undefined
      return entriesAhead(at.queue, at.lane, index, lane => usual(at.queue, lane) / weight(lane.organizationId))
    },

    /** Whether anything waits for the model. */
    waits(modelId: string): boolean {
      const queue = windows.queue(modelId)
      return queue !== undefined && queue.interactive + queue.background > 0
    },
    /** How many entries wait for the model: calls, and jobs. */
    waiting(modelId: string): { interactive: number; background: number } {
      const { interactive = 0, background = 0 } = windows.queue(modelId) ?? {}
      return { interactive, background }
    },

    /**
     * Milliseconds for which the lane that was served longest ago has waited, of calls where any wait; and milliseconds of
     * slot time that all entries are expected to take, null while that is not known.
     */
    load(modelId: string, { jobs = true }: { jobs?: boolean } = {}): { oldestWaitMs: number; workMs: number | null } {
      const queue = windows.queue(modelId)
      const calls = queue !== undefined && queue.interactive > 0
      let [since, workMs]: [number, number | null] = [now(), 0]
      for (const lane of queue?.lanes.values() ?? []) {
        const waiting = waitingIn(lane)
        if (waiting === 0 || (!jobs && lane.class !== 'interactive')) continue
        if (!calls || lane.class === 'interactive') since = Math.min(since, lane.waitingSince)
        const typicalMs = typical(queue!, lane)
        workMs = workMs === null || typicalMs === null ? null : workMs + waiting * typicalMs
      }
      return { oldestWaitMs: now() - since, workMs }
    },

    /** The models for which entries wait or have run. */
    models: (): string[] => Array.from(windows.all(), ([modelId]) => modelId),
    /** How many entries wait, how many of them are in memory, and in how many lanes. */
    stats: () => windows.stats(),
  }
}
export type Queue = ReturnType<typeof openQueue>

/** What the queue needs to know of a job. */
export const waitingOf = ({ id, organizationId, modelId, class: jobClass, rank }: WaitingJob): WaitingJob => ({
  id,
  organizationId,
  modelId,
  class: jobClass,
  rank,
})
