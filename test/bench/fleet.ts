import { parseArgs } from 'node:util'
import { type Figures, figuresOf } from './fleet/figures.ts'
import { runPlain } from './fleet/policies.ts'
import { simulate } from './fleet/simulate.ts'
import { kinds, madeArrivals, modelCount, recordedArrivals, type Workload } from './fleet/workloads.ts'

const { values } = parseArgs({
  options: {
    bounds: { type: 'string', default: '2,5,10,20' },
    fits: { type: 'string', default: '1,2' },
    seeds: { type: 'string', default: '1,2' },
    load: { type: 'string', default: '2' },
    traces: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
  },
})
const loadMs = Number(values.load) * 1_000

function workloads(seed: number, fits: number): Workload[] {
  const made = kinds.map(kind => {
    const serviceMs = loadMs / 10
    const scale = serviceMs / 200
    const perSecond = 0.6 * fits * 5
    const arrivals = madeArrivals(kind, seed, perSecond).map(one => ({ ...one, at: one.at * scale }))
    return { name: kind, arrivals, models: modelCount, serviceMs, loadMs, slots: 1 }
  })
  const recorded = values.traces
    .split(',')
    .filter(Boolean)
    .map(path => {
      const arrivals = recordedArrivals(path, seed)
      const slots = 8
      const perMs = arrivals.length / (arrivals.at(-1)!.at || 1)
      return {
        name: path.split('/').at(-1)!,
        arrivals,
        models: modelCount,
        serviceMs: (0.6 * fits * slots) / perMs,
        loadMs: loadMs * 10,
        slots,
      }
    })
  return [...made, ...recorded].filter(
    ({ name }) => !values.only || values.only.split(',').some(one => name.includes(one)),
  )
}
const s = (ms: number) => (ms / 1_000).toFixed(2).padStart(8)
for (const fits of values.fits.split(',').map(Number))
  for (const seed of values.seeds.split(',').map(Number))
    for (const workload of workloads(seed, fits)) {
      const reference = runPlain(workload, fits, 'first-come')
      const line = (name: string, f: Figures) =>
        console.log(
          `fits ${fits} seed ${seed} ${workload.name.slice(0, 20).padEnd(20)} ${name.padEnd(15)} n ${f.served} loads ${String(f.loads).padStart(5)} mean ${s(f.meanMs)} p50 ${s(f.p50Ms)} p99 ${s(f.p99Ms)} max ${s(f.maxMs)} behind ${s(f.behindMs)} rare ${s(f.rareMs)}`,
        )
      line('first-come', figuresOf(workload, reference, reference))
      line('resident-first', figuresOf(workload, runPlain(workload, fits, 'resident-first'), reference))
      for (const bound of values.bounds.split(',').map(Number)) {
        const t = performance.now()
        const run = simulate(workload, fits, bound)
        line(`bound ${bound}`, figuresOf(workload, run, reference))
        if (process.env.T) console.log(performance.now() - t)
      }
    }
