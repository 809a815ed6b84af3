import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { defaultRules } from '../../gpu/residency/advance.ts'
import { type Figures, figuresOf } from './fleet/figures.ts'
import { runPlain } from './fleet/policies.ts'
import { simulate } from './fleet/simulate.ts'
import { chainedArrivals, kinds, madeArrivals, modelCount, recordedArrivals, type Workload } from './fleet/workloads.ts'

/**
 * Simulates six models with room for one or two, in virtual time: the queue, the dispatch and the residency of the product
 * beside first come, first served and beside resident first (the rule of llama-swap), on the same arrivals. Prints the curve
 * of the bound: loads, waits, and how many loads a request was behind first come at most. A line ends with MISSED when the
 * default bound is worse than resident first by more than the bars, or a request was further behind first come than the
 * bound, two loads and two requests; the exit code is then 1. Where resident first starves models, the longest wait for
 * those counts instead. Run:
 * `npx node test/bench/fleet.ts`, with `--only poisson,hot` for some workloads, `--load 20` for other seconds of a load,
 * `--park 0.5 --wake 2` for other seconds of an engine that is parked and woken in place of a load (`--parked-load`, 20),
 * and `--traces a.csv,b.jsonl` for recorded arrivals besides (first column of a CSV, or `timestamp`).
 */
const { values } = parseArgs({
  options: {
    bounds: { type: 'string', default: '2,5,10,20' },
    fits: { type: 'string', default: '1,2' },
    seeds: { type: 'string', default: '1,2' },
    load: { type: 'string', default: '2' },
    park: { type: 'string', default: '0.5' },
    wake: { type: 'string', default: '2' },
    'parked-load': { type: 'string', default: '20' },
    traces: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
  },
})
const list = (text: string): string[] => text.split(',').filter(Boolean)
const loadMs = Number(values.load) * 1_000
/** Share of the time in which engines would be busy if loads took none. */
const busy = 0.6
/** How much worse than resident first the default bound may be, where that starves nobody. */
const bars = { loads: 1.05, meanMs: 1.1, p99Ms: 1.2 }
/** How many bounds a rare model beside a hot one may wait at most. */
const rareBounds = 1.5

/** A load takes as long as ten requests. */
const made = (seed: number, fits: number, loadMs: number): Workload[] =>
  kinds.map(name => {
    const serviceMs = loadMs / 10
    const scale = serviceMs / 200
    const arrivals = madeArrivals(name, seed, busy * fits * 5).map(one => ({ ...one, at: one.at * scale }))
    return { name, arrivals, models: modelCount, serviceMs, loadMs, slots: 1 }
  })

/** Eight slots, and loads ten times as long as those of the made workloads. */
const recorded = (seed: number, fits: number): Workload[] =>
  list(values.traces).map(path => {
    const arrivals = recordedArrivals(path, seed)
    const [slots, perMs] = [8, arrivals.length / Math.max(1, arrivals.at(-1)!.at)]
    const serviceMs = (busy * fits * slots) / perMs
    return { name: basename(path), arrivals, models: modelCount, serviceMs, loadMs: loadMs * 10, slots }
  })

let missed = 0
function print(what: string, { loadMs, serviceMs }: Workload, one: Figures, other: Figures, isDefault = false): void {
  const ratio = (name: keyof typeof bars) => one[name] / other[name]
  const text = (name: keyof typeof bars) => `(${ratio(name).toFixed(2)})`
  const seconds = (ms: number) => (ms / 1_000).toFixed(1)
  const bound = defaultRules.orderBound
  const [rare, behind] = [one.rareMs / loadMs, one.behindMs / loadMs]
  const starves = other.behindMs > rareBounds * bound * loadMs
  const fails =
    behind > bound + 2 + (2 * serviceMs) / loadMs ||
    (starves
      ? rare > rareBounds * bound
      : Object.entries(bars).some(([name, bar]) => ratio(name as keyof typeof bars) > bar))
  if (isDefault && fails) missed++
  console.log(
    `fleet: ${what}: ${one.loads} loads ${text('loads')}, mean ${seconds(one.meanMs)} s ${text('meanMs')}, p99 ${seconds(one.p99Ms)} s ${text('p99Ms')}, longest ${seconds(one.maxMs)} s, of rare models ${rare.toFixed(1)} loads, behind first come ${behind.toFixed(1)} loads${isDefault && fails ? ' MISSED' : ''}`,
  )
}

for (const fits of list(values.fits).map(Number))
  for (const seed of list(values.seeds).map(Number))
    for (const workload of [...made(seed, fits, loadMs), ...recorded(seed, fits)]) {
      if (values.only && !list(values.only).some(name => workload.name.includes(name))) continue
      const first = runPlain(workload, fits, 'first-come')
      const resident = figuresOf(workload, runPlain(workload, fits, 'resident-first'), first)
      const name = `room for ${fits}, ${workload.name} ${seed}`
      print(`${name}, first come`, workload, figuresOf(workload, first, first), resident)
      print(`${name}, resident first`, workload, resident, resident)
      for (const bound of list(values.bounds).map(Number)) {
        const run = figuresOf(workload, simulate(workload, fits, bound), first)
        if (run.served < workload.arrivals.length)
          throw new Error(`${name}: ${run.served} of ${workload.arrivals.length} were served.`)
        print(`${name}, bound ${bound}`, workload, run, resident, bound === defaultRules.orderBound)
      }
    }
/**
 * Runs of a workflow whose models do not fit together, beside one load for each model. With room for two of three, the load of
 * the second begins while the first serves; without that knowledge of the graph no run is shorter.
 */
for (const [fits, runs] of [1, 2].flatMap(fits => [1, 20].map(runs => [fits, runs] as const))) {
  const [models, serviceMs, loadMs] = [3, 5_000, 20_000]
  const workload = { name: 'runs', arrivals: chainedArrivals(runs, models), models, serviceMs, loadMs, slots: 1 }
  const secondsOf = (loadsAhead: boolean) => {
    const { begins, loads } = simulate(workload, fits, defaultRules.orderBound, { loadsAhead })
    return { seconds: (Math.max(...begins) + serviceMs) / 1_000, loads: loads.length }
  }
  const [ahead, asked] = [secondsOf(true), secondsOf(false)]
  const byModel = (models * (loadMs + runs * serviceMs)) / 1_000
  const fails = ahead.seconds > 1.15 * byModel || ahead.seconds > asked.seconds
  const isShorter = fits === 1 || runs > 1 || ahead.seconds < asked.seconds
  if (fails || !isShorter) missed++
  const missedText = fails || !isShorter ? ' MISSED' : ''
  console.log(
    `fleet: room for ${fits}, ${runs} runs of ${models} models: ${ahead.loads} loads, ${ahead.seconds} s (by request ${asked.seconds} s, by model ${byModel} s)${missedText}`,
  )
}
/**
 * What parking gains on the same arrivals: engines are woken in a tenth of a load. With room in the main memory for all models,
 * for two, and for one beside the loaded ones.
 */
for (const fits of list(values.fits).map(Number))
  for (const workload of made(1, fits, Number(values['parked-load']) * 1_000)) {
    if (values.only && !list(values.only).some(name => workload.name.includes(name))) continue
    const first = runPlain(workload, fits, 'first-come')
    const of = (engines: number) => {
      const parking = { parkMs: Number(values.park) * 1_000, wakeMs: Number(values.wake) * 1_000, engines }
      const run = simulate(workload, fits, defaultRules.orderBound, engines > 0 ? { parking } : {})
      return { ...figuresOf(workload, run, first), wakes: run.wakes }
    }
    const none = of(0)
    for (const engines of [0, 1, 2, modelCount]) {
      const { loads, wakes, meanMs, p99Ms, maxMs, behindMs } = of(engines)
      const isWorse = meanMs > none.meanMs * bars.meanMs
      if (isWorse) missed++
      const seconds = [meanMs, p99Ms, maxMs].map(ms => (ms / 1_000).toFixed(1))
      const times = `mean ${seconds[0]} s (${(meanMs / none.meanMs).toFixed(2)}), p99 ${seconds[1]} s, longest ${seconds[2]} s, behind first come ${(behindMs / workload.loadMs).toFixed(1)} loads`
      console.log(
        `fleet: room for ${fits}, ${workload.name}, main memory for ${engines} parked: ${loads} loads, ${wakes} wakes, ${times}${isWorse ? ' MISSED' : ''}`,
      )
    }
  }
if (missed > 0) process.exitCode = 1
