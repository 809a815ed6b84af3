import { readFileSync } from 'node:fs'

/** A request of a workload. `at`: milliseconds from the start. */
export interface Arrival {
  at: number
  model: number
  /** Jobs are of another organization than chats. */
  kind: 'chat' | 'job' | 'node'
  /** Index of the request after whose end this one comes; `at` does not count then. */
  after?: number
}

export interface Workload {
  name: string
  /** By time. */
  arrivals: Arrival[]
  models: number
  serviceMs: number
  loadMs: number
  /** Requests that one engine works on at a time. */
  slots: number
}

/** Pseudo-random numbers from 0 to 1: the same for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const models = 6
const zipfExponent = 1.1

/** Chooses a model by Zipf's law: the first is the most popular. */
function popular(random: () => number): number {
  const weights = Array.from({ length: models }, (_, at) => 1 / (at + 1) ** zipfExponent)
  let left = random() * weights.reduce((sum, weight) => sum + weight)
  return Math.max(
    0,
    weights.findIndex(weight => (left -= weight) < 0),
  )
}

export const kinds = ['poisson', 'bursty', 'mixed', 'hot'] as const

/**
 * A made workload of ten minutes. `poisson`: independent arrivals. `bursty`: sessions of about ten requests to one model.
 * `mixed`: half chats, half jobs that come sixty at a time. `hot`: for the first half one model at 105 % of what one
 * engine can do, with a rare job for each of the others. `perSecond`: the mean rate.
 */
export function madeArrivals(kind: (typeof kinds)[number], seed: number, perSecond: number): Arrival[] {
  const endMs = 600_000
  const random = randomOf(seed)
  const arrivals: Arrival[] = []
  const add = (at: number, model: number, kind: Arrival['kind']) => {
    if (at < endMs) arrivals.push({ at, model, kind })
  }
  const gap = (meanMs: number) => -Math.log(1 - random()) * meanMs
  const stream = (meanMs: number, until: number, each: (at: number) => void) => {
    for (let at = gap(meanMs); at < until; at += gap(meanMs)) each(at)
  }
  switch (kind) {
    case 'poisson':
      stream(1_000 / perSecond, endMs, at => add(at, popular(random), 'chat'))
      break
    case 'bursty':
      stream(10_000 / perSecond, endMs, begin => {
        const model = popular(random)
        for (let at = begin; ; at += gap(300)) {
          add(at, model, 'chat')
          if (random() < 0.1) break
        }
      })
      break
    case 'mixed':
      stream(2_000 / perSecond, endMs, at => add(at, popular(random), 'chat'))
      for (let at = 3_000; at < endMs; at += 120_000 / perSecond)
        for (let n = 0; n < 60; n++) add(at + n, popular(random), 'job')
      break
    case 'hot':
      stream(1_000 / (1.75 * perSecond), endMs / 2, at => add(at, 0, 'chat'))
      for (let at = 5_000; at < endMs; at += 10_000) add(at, 1 + (Math.round(at / 10_000) % (models - 1)), 'job')
  }
  return arrivals.sort((a, b) => a.at - b.at)
}

/** `runs` of a workflow that begin together: a node for each of the models, one after the other. */
export const chainedArrivals = (runs: number, models: number): Arrival[] =>
  Array.from({ length: runs * models }, (_, at) => ({
    at: 0,
    model: at % models,
    kind: 'node',
    ...(at % models > 0 ? { after: at - 1 } : {}),
  }))

/** Requests at the recorded times, with models by Zipf's law: CSV with a first column of times, or JSONL with `timestamp`. */
export function recordedArrivals(path: string, seed: number): Arrival[] {
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  const times = path.endsWith('.jsonl')
    ? lines.map(line => (JSON.parse(line) as { timestamp: number }).timestamp)
    : lines.slice(1).map(line => Date.parse(`${line.split(',')[0]!.replace(' ', 'T').slice(0, 23)}Z`))
  const random = randomOf(seed)
  const first = Math.min(...times)
  return times
    .map(time => ({ at: time - first, model: popular(random), kind: 'chat' as const }))
    .sort((a, b) => a.at - b.at)
}

export const modelCount = models
