import { setTimeout as delay } from 'node:timers/promises'
import { median, type Print, quantile } from './figures.ts'
import type { Organization, Platform } from './platform.ts'
import { send, submit, type Work } from './requests.ts'

const serviceMs = 50
const submitters = 64
const uncounted = 40
const models = { without: 'no-backlog', with: 'backlog' } as const
export const backlogModels = Object.values(models)

/**
 * What a backlog of durable jobs of another organization adds to interactive calls on the same slot. Each pattern of
 * calls runs at the same time on a model with the backlog and on one without, Poisson arrivals at the same instants,
 * so that a disturbance of the machine meets both. A service time is what a single caller waits without the backlog: a
 * job that has just begun takes as long, and no order of the queue can take it back.
 */
export async function measureBacklog(
  platform: Platform,
  { jobs, calls, print }: { jobs: number; calls: number; print: Print },
): Promise<void> {
  const [heavy, caller] = [await platform.organization('heavy'), await platform.organization('caller')]
  const gaps = exponential(calls, serviceMs / 0.5)
  const patterns: Record<string, (work: Work, count: number) => Promise<number[]>> = {
    'one caller': (work, count) => closedLoops(1, count, () => send('chat', platform, work, caller)),
    'Poisson arrivals at half load': work => openLoop(gaps, () => send('chat', platform, work, caller)),
    'four callers': (work, count) => closedLoops(4, count, () => send('chat', platform, work, caller)),
  }
  let submitted = 0
  for (const [name, pattern] of Object.entries(patterns)) {
    submitted = await fill(platform, { model: models.with, ms: serviceMs }, heavy, { submitted, wanted: jobs })
    const both = [models.without, models.with]
    // Work left by the submissions and the compilation of the first calls are not measured.
    const [alone] = await Promise.all(both.map(model => patterns['one caller']!({ model, ms: serviceMs }, uncounted)))
    const seenMs = median(alone!)
    const [without, loaded] = await Promise.all(both.map(model => pattern({ model, ms: serviceMs }, calls)))
    const left = submitted - (await served(platform, heavy))
    const added = (quantile(loaded!, 0.99) - quantile(without!, 0.99)) / seenMs
    print(
      `${name} before ${jobs} waiting jobs: p99 ${quantile(loaded!, 0.99).toFixed(0)} ms, ${quantile(without!, 0.99).toFixed(0)} without, ` +
        `added ${added.toFixed(2)} service times (bar 1); p50 ${median(loaded!).toFixed(0)} ms, ${median(without!).toFixed(0)} without; ` +
        `${loaded!.length} calls of ${serviceMs} ms, ${left} jobs left`,
      added <= 1,
    )
  }
  const { maxAtOnce } = await platform.used(models.with)
  if (maxAtOnce > 1) throw new Error(`${maxAtOnce} requests ran at once on the one slot of ${models.with}`)
}

const served = async (platform: Platform, by: Organization): Promise<number> =>
  (await platform.used(models.with)).organizations[by.name]?.answers ?? 0

/** Submits until this many jobs wait; resolves with the number submitted in total. */
async function fill(
  platform: Platform,
  work: Work,
  by: Organization,
  { submitted, wanted }: { submitted: number; wanted: number },
): Promise<number> {
  let [all, missing] = [submitted, wanted - (submitted - (await served(platform, by)))]
  while (missing > 0) {
    let left = missing
    const submitter = async () => {
      while (left-- > 0) await submit(platform, work, by)
    }
    await Promise.all(Array.from({ length: submitters }, submitter))
    all += missing
    missing = wanted - (all - (await served(platform, by)))
  }
  return all
}

/** This many callers, each of which sends again as soon as it has its answer. */
async function closedLoops(callers: number, calls: number, call: () => Promise<number>): Promise<number[]> {
  const times: number[] = []
  let left = calls
  const caller = async () => {
    while (left-- > 0) times.push(await call())
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return times
}

/** Sends at the times that the gaps determine, whatever has been answered. */
async function openLoop(gaps: readonly number[], call: () => Promise<number>): Promise<number[]> {
  const began = performance.now()
  const answers: Promise<number>[] = []
  let at = 0
  for (const gap of gaps) {
    at += gap
    await delay(Math.max(0, began + at - performance.now()))
    answers.push(call())
  }
  return Promise.all(answers)
}

/** Exponentially distributed gaps with this mean, the same in every run. */
function exponential(count: number, meanMs: number): number[] {
  let state = 42
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state + 1) / 2 ** 32
  }
  return Array.from({ length: count }, () => -Math.log(next()) * meanMs)
}
