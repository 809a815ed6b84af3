import type { Run } from './policies.ts'
import type { Workload } from './workloads.ts'

/** Times in milliseconds. A wait ends when the engine begins. */
export interface Figures {
  served: number
  loads: number
  meanMs: number
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** The most that one request began later than in the reference. */
  behindMs: number
  /** The longest wait for a model other than the first. */
  rareMs: number
}

export function figuresOf({ arrivals }: Workload, { begins, loads }: Run, reference: Run): Figures {
  const waits = arrivals.flatMap(({ at }, n) => (begins[n] === undefined ? [] : [begins[n] - at]))
  const sorted = waits.toSorted((a, b) => a - b)
  const quantile = (part: number) =>
    sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN
  const longest = (all: number[]) => all.reduce((max, one) => Math.max(max, one), 0)
  return {
    served: waits.length,
    loads: loads.length,
    meanMs: waits.reduce((sum, wait) => sum + wait, 0) / waits.length,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    maxMs: longest(waits),
    behindMs: longest(arrivals.map((_, n) => (begins[n] ?? Number.POSITIVE_INFINITY) - reference.begins[n]!)),
    rareMs: longest(arrivals.map(({ at, model }, n) => (model === 0 ? 0 : begins[n]! - at))),
  }
}
