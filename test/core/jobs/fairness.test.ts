import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openJobs } from '../../../core/jobs/jobs.ts'
import { keptLog, newJob } from '../store/_store.ts'
import { slotsOnly } from './_fleet.ts'
import { type Arrival, type Ended, entitled, jain, shares } from './_queue.ts'
import { done, runner } from './_runs.ts'
import { memoryStore } from './_store.ts'

/** Simulated time; the ticks of the event loop are real. */
beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'],
  })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Simulates arrivals at openJobs, on slots without engines and a store in memory. */
async function play(arrivals: readonly Arrival[], slots: number, weights: Record<string, number> = {}) {
  const { log } = keptLog()
  const { fleet, models } = slotsOnly({ slots })
  const start = performance.now()
  const at = () => performance.now() - start
  const ended: Ended[] = []
  const jobs = openJobs({
    store: memoryStore(),
    fleet,
    models,
    weightOf: id => weights[id] ?? 1,
    log,
    run: runner(async job => {
      const arrival = JSON.parse(job.inputs) as Arrival
      const begun = at()
      await new Promise<void>(resolve => setTimeout(resolve, arrival.ms))
      ended.push({ ...arrival, begun, ended: at() })
      return done
    }),
  })
  for (const arrival of arrivals) {
    const submit = () => jobs.submit(newJob({ organizationId: arrival.organization, inputs: JSON.stringify(arrival) }))
    if (arrival.at === 0) await submit()
    else setTimeout(() => void submit(), arrival.at)
  }
  while (ended.length < arrivals.length) await vi.advanceTimersByTimeAsync(50)
  await jobs.drain(0)
  return ended
}

const many = (organization: string, count: number, ms: number): Arrival[] =>
  Array.from({ length: count }, () => ({ organization, at: 0, ms }))
const trickle = (count: number): Arrival[] =>
  Array.from({ length: count }, (_, i) => ({ organization: 'trickle', at: 17 + i * 1_000, ms: 100 }))

test.each<[name: string, weights: Record<string, number>, lotsMs: number]>([
  ['equal', {}, 100],
  ['equal, although the jobs of one take four times as long', {}, 400],
  ['1 to 4', { few: 4 }, 100],
])('T-FAIR-1 through openJobs: %s', async (_, weights, lotsMs) => {
  const arrivals = [...many('lots', 1_000, lotsMs), ...many('few', 10, 100), ...trickle(20)]
  const ended = await play(arrivals, 1, weights)
  const to = Math.max(...ended.filter(one => one.organization === 'few').map(one => one.ended))
  const demand: Record<string, number> = {}
  for (const one of arrivals) if (one.at < to) demand[one.organization] = (demand[one.organization] ?? 0) + one.ms
  const fair = entitled(demand, weights, to)
  const got = shares(ended, 0, to)
  expect(jain(Object.keys(fair).map(name => got[name]! / fair[name]!))).toBeGreaterThanOrEqual(0.95)
})

test('an organization with occasional requests waits at most twice as long as alone', async () => {
  const mean = (ended: readonly Ended[]) => {
    const own = ended.filter(one => one.organization === 'trickle')
    return own.reduce((sum, one) => sum + one.ended - one.at, 0) / own.length
  }
  const alone = mean(await play(trickle(20), 1))
  const beside = mean(await play([...many('lots', 300, 100), ...many('few', 10, 100), ...trickle(20)], 1))
  expect(alone).toBeGreaterThanOrEqual(100)
  expect(beside / alone).toBeLessThanOrEqual(2)
})
