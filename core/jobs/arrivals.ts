import { rankAt } from '../store/rank.ts'

/**
 * Gives each job its rank: microseconds of its arrival, minus the head start of its priority. No two arrivals are
 * equal, and none is before an earlier one, whatever happens to the clock while the server runs.
 */
export function openArrivals(clock: { now(): number }): (priority: number) => number {
  let last = 0
  return priority => {
    last = Math.max(last + 1, clock.now() * 1_000)
    return rankAt(last, priority)
  }
}
