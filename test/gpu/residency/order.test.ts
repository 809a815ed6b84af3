import { expect, test } from 'vitest'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import { figuresOf } from '../../bench/fleet/figures.ts'
import { runPlain } from '../../bench/fleet/policies.ts'
import { simulate } from '../../bench/fleet/simulate.ts'
import { madeArrivals, modelCount, type Workload } from '../../bench/fleet/workloads.ts'

/** Six models of which one fits, loads of 2 s, requests of 0.2 s; 60 % busy. */
function workloadOf(name: Parameters<typeof madeArrivals>[0], seed: number): Workload {
  const arrivals = madeArrivals(name, seed, 3)
  return { name, arrivals, models: modelCount, serviceMs: 200, loadMs: 2_000, slots: 1 }
}

test.each(['poisson', 'bursty', 'mixed'] as const)('%s: hardly more loads and wait than resident first', name => {
  const workload = workloadOf(name, 3)
  const first = runPlain(workload, 1, 'first-come')
  const resident = figuresOf(workload, runPlain(workload, 1, 'resident-first'), first)
  const own = figuresOf(workload, simulate(workload, 1, defaultRules.orderBound), first)
  expect(own.served).toBe(workload.arrivals.length)
  expect(own.loads).toBeLessThanOrEqual(resident.loads * 1.05)
  expect(own.meanMs).toBeLessThanOrEqual(resident.meanMs * 1.1)
  expect(own.p99Ms).toBeLessThanOrEqual(resident.p99Ms * 1.2)
})

test('hot: nobody is behind first come by more than the bound, two loads and two requests', () => {
  const workload = workloadOf('hot', 3)
  const first = runPlain(workload, 1, 'first-come')
  const resident = figuresOf(workload, runPlain(workload, 1, 'resident-first'), first)
  const own = figuresOf(workload, simulate(workload, 1, defaultRules.orderBound), first)
  expect(own.served).toBe(workload.arrivals.length)
  expect(own.behindMs).toBeLessThanOrEqual((defaultRules.orderBound + 2) * workload.loadMs + 2 * workload.serviceMs)
  // Resident first starves the rare models.
  expect(resident.rareMs).toBeGreaterThan(100 * workload.loadMs)
  expect(own.rareMs).toBeLessThanOrEqual(1.5 * defaultRules.orderBound * workload.loadMs)
})
