import type { WaitingJobDetails, WaitingQuery } from '../store/store.ts'
import type { WaitingLane } from './queue.ts'

/** How far the jobs of a lane have been looked at. */
interface Scan {
  /** The rank from which the rest has not been looked at, and the jobs of that rank that were: nodes share one. */
  from: number
  seen: Set<string>
  isComplete: boolean
  /** When it begins again, epoch milliseconds. */
  againAt: number
  /** With how many failed starts of the model it begins again. */
  againWith: number
  lane: object
  /** The arrivals of the lane that it knows of. */
  arrived: number
}

/** What follows for a job that was looked at: it is left for now, until a time or until so many starts have failed. */
export type LookAgain = { at: number } | { failedStarts: number }

/** What one look costs at most: rows of the store, and jobs for which something expensive is done. */
export interface LookBudget {
  rows: number
  jobs: number
}

type Look = (job: WaitingJobDetails, budget: LookBudget) => Promise<LookAgain | 'stop' | undefined>

/** How many rows are read at once. */
const pageRows = 128
/** After how long a job that was left alone, or one that arrived before those looked at, is seen, milliseconds. */
const againMs = 10_000
const isSpent = ({ rows, jobs }: LookBudget): boolean => rows <= 0 || jobs <= 0

/**
 * Looks at the stored jobs of a model, all of them, a bounded number at a time: each look continues where the last one ended.
 * Lanes without news cost nothing. Remembers a few numbers for each lane, and the ids of its last rank.
 */
export function openLaneScans(options: {
  read: (query: WaitingQuery) => Promise<WaitingJobDetails[]>
  now: () => number
}) {
  const { read, now } = options
  let scans = new Map<string, Scan>()

  const begin = (scan: Scan): Scan =>
    Object.assign(scan, {
      from: Number.MIN_SAFE_INTEGER,
      seen: new Set<string>(),
      isComplete: false,
      againAt: Infinity,
      againWith: Infinity,
    })
  const newScan = ({ lane, arrived }: WaitingLane): Scan => begin({ lane, arrived } as Scan)

  function refresh(scan: Scan, { arrived }: WaitingLane, failedStarts: number): void {
    const enoughFailed = scan.againWith < Infinity && failedStarts >= scan.againWith
    if (scan.isComplete && (now() >= scan.againAt || enoughFailed)) begin(scan)
    if (arrived === scan.arrived) return
    // Most new jobs follow those that were looked at; an urgent one may precede them.
    if (scan.isComplete) scan.againAt = Math.min(scan.againAt, now() + againMs)
    scan.isComplete = false
    scan.arrived = arrived
  }

  /** Looks at a page; false: stop, because the budget is spent or `look` says so. */
  async function readPage(scan: Scan, lane: WaitingLane, budget: LookBudget, look: Look): Promise<boolean> {
    const { modelId, class: jobClass, organizationId } = lane
    const limit = Math.min(pageRows, budget.rows) + scan.seen.size
    // A read of no rows has a cost too.
    budget.rows -= 1
    const jobs = await read({ modelId, class: jobClass, organizationId, from: scan.from, limit })
    budget.rows -= jobs.length
    for (const job of jobs) {
      if (scan.seen.has(job.id)) continue
      if (budget.jobs <= 0) return false
      const again = await look(job, budget)
      if (again === 'stop') return false
      if (again && 'at' in again) scan.againAt = Math.min(scan.againAt, again.at)
      if (again && 'failedStarts' in again) scan.againWith = Math.min(scan.againWith, again.failedStarts)
      if (job.rank !== scan.from) scan.seen.clear()
      scan.from = job.rank
      scan.seen.add(job.id)
    }
    scan.isComplete = jobs.length < limit
    return true
  }

  return {
    /**
     * Looks at jobs of these lanes until the budget is spent or nothing is left. `failedStarts`: of the model. `look` says
     * when a job is looked at again; 'stop' ends this look at the job, where the next one continues.
     */
    async continue(
      lanes: readonly WaitingLane[],
      { budget, failedStarts = 0 }: { budget: LookBudget; failedStarts?: number | undefined },
      look: Look,
    ): Promise<void> {
      const byKey = new Map(lanes.map(lane => [`${lane.class} ${lane.organizationId}`, lane]))
      const isNew = (key: string, { lane }: WaitingLane) => scans.get(key)?.lane !== lane
      const added = [...byKey]
        .filter(([key, lane]) => isNew(key, lane))
        .map(([key, lane]) => [key, newScan(lane)] as const)
      // New lanes first, then the one that was looked at the longest ago.
      const known = [...scans].filter(([key]) => byKey.has(key) && !isNew(key, byKey.get(key)!))
      const order = [...added, ...known]
      scans = new Map(order)
      for (const [key, scan] of order) {
        if (isSpent(budget)) return
        refresh(scan, byKey.get(key)!, failedStarts)
        if (scan.isComplete) continue
        scans.delete(key)
        scans.set(key, scan)
        while (!scan.isComplete && !isSpent(budget)) if (!(await readPage(scan, byKey.get(key)!, budget, look))) return
      }
    },
  }
}
