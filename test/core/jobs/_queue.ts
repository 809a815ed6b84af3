import type { Queue, RunningEntry } from '../../../core/jobs/queue.ts'
import type { Backlog, JobClass, StoredJobClass, WaitingJob, WaitingQuery } from '../../../core/store/store.ts'

export const waiting = (
  id: string,
  organizationId: string,
  rank: number,
  modelId = 'm',
  jobClass: JobClass = 'async',
): WaitingJob => ({
  id,
  organizationId,
  modelId,
  class: jobClass,
  rank,
})

/** Takes the next entry; undefined: none is in memory. */
export function take(queue: Queue, modelId = 'm'): RunningEntry | undefined {
  const next = queue.next(modelId)
  return next && 'job' in next ? queue.take(next) : undefined
}

/** What a store would hold: it answers the reads of a queue. */
export function shelf() {
  const jobs = new Map<string, WaitingJob>()
  const find = (want: WaitingQuery): WaitingJob[] =>
    [...jobs.values()]
      .filter(
        job =>
          job.modelId === want.modelId &&
          job.class === want.class &&
          job.organizationId === want.organizationId &&
          job.rank >= want.from,
      )
      .sort((a, b) => a.rank - b.rank || (a.id < b.id ? -1 : 1))
      .slice(0, want.limit)
  return {
    jobs,
    find,
    backlog() {
      const counts = new Map<string, Backlog>()
      for (const { modelId, class: jobClass, organizationId } of jobs.values()) {
        const key = `${modelId} ${jobClass} ${organizationId}`
        const one = counts.get(key) ?? { modelId, class: jobClass as StoredJobClass, organizationId, jobs: 0 }
        one.jobs++
        counts.set(key, one)
      }
      return [...counts.values()]
    },
    /** The next entry, after all necessary reads. */
    next(queue: Queue, modelId = 'm'): RunningEntry | undefined {
      for (;;) {
        const next = queue.next(modelId)
        if (!next) return undefined
        if ('job' in next) return queue.take(next)
        if (!('read' in next)) throw new Error('A look is under way that nobody began')
        queue.readDone(next.read, find(next.read))
      }
    },
  }
}

export interface Arrival {
  organization: string
  at: number
  /** GPU milliseconds. */
  ms: number
}
export interface Ended extends Arrival {
  begun: number
  ended: number
}

/** Simulates arrivals at a queue with this many slots, on its own clock. */
export function simulate(queue: Queue, arrivals: readonly Arrival[], slots: number, until = Infinity): Ended[] {
  const coming = [...arrivals].sort((a, b) => a.at - b.at)
  const byId = new Map<string, Arrival>()
  const running: { turn: RunningEntry; arrival: Arrival; begun: number; ends: number }[] = []
  const ended: Ended[] = []
  let came = 0
  for (let now = 0; now <= until; ) {
    while (came < coming.length && coming[came]!.at <= now) {
      const arrival = coming[came]!
      const id = String(came++)
      byId.set(id, arrival)
      queue.offer(waiting(id, arrival.organization, came))
    }
    while (running.length < slots) {
      const next = queue.next('m')
      if (!next || !('job' in next)) break
      const turn = queue.take(next)
      const arrival = byId.get(turn.job.id)!
      running.push({ turn, arrival, begun: now, ends: now + arrival.ms })
    }
    const nextArrival = coming[came]?.at ?? Infinity
    const nextEnd = Math.min(...running.map(({ ends }) => ends))
    now = Math.min(nextArrival, nextEnd)
    if (now === Infinity) break
    for (const one of running.filter(({ ends }) => ends <= now)) {
      running.splice(running.indexOf(one), 1)
      queue.ran(one.turn, one.arrival.ms)
      ended.push({ ...one.arrival, begun: one.begun, ended: now })
    }
  }
  return ended
}

/** GPU time of each organization between two times. */
export function shares(ended: readonly Ended[], from: number, to: number): Record<string, number> {
  const got: Record<string, number> = {}
  for (const one of ended) {
    const ms = Math.max(0, Math.min(one.ended, to) - Math.max(one.begun, from))
    got[one.organization] = (got[one.organization] ?? 0) + ms
  }
  return got
}

/** Jain's index of fairness: 1 when all are equal, 1/n when one has everything. */
export function jain(values: readonly number[]): number {
  const sum = values.reduce((a, b) => a + b, 0)
  return sum ** 2 / (values.length * values.reduce((a, b) => a + b ** 2, 0))
}

/** The fair part of a capacity for each: nobody more than requested, the rest by weight. */
export function entitled(demand: Record<string, number>, weights: Record<string, number>, capacity: number) {
  const open = new Set(Object.keys(demand))
  const fair: Record<string, number> = {}
  let left = capacity
  for (;;) {
    const total = [...open].reduce((sum, name) => sum + (weights[name] ?? 1), 0)
    const modest = [...open].filter(name => demand[name]! <= (left * (weights[name] ?? 1)) / total)
    if (modest.length === 0 || open.size === 0) {
      for (const name of open) fair[name] = (left * (weights[name] ?? 1)) / total
      return fair
    }
    for (const name of modest) {
      fair[name] = demand[name]!
      left -= demand[name]!
      open.delete(name)
    }
  }
}
