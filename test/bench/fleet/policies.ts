import type { Workload } from './workloads.ts'

/** What a policy did. `begins`: when each request began, by its index; `loads`: when each load began; `wakes`: how many only woke. */
export interface Run {
  begins: number[]
  loads: number[]
  wakes?: number
}

interface Engine {
  model: number
  readyAt: number
  /** When each of its slots is free. */
  slots: number[]
  lastUsed: number
}

/**
 * Two policies to compare with, on `fits` engines. `first-come`: strictly by arrival, and the least recently used engine
 * leaves. `resident-first`: a request for a loaded model goes to it at once; the others in order of arrival, when an
 * engine is idle, as in llama-swap.
 */
export function runPlain(workload: Workload, fits: number, policy: 'first-come' | 'resident-first'): Run {
  const { arrivals, loadMs, serviceMs } = workload
  const begins: number[] = []
  const loads: number[] = []
  const engines: Engine[] = []
  const queue: number[] = []
  const freeAt = ({ slots }: Engine) => Math.max(...slots)
  let now = 0

  function load(model: number): Engine | undefined {
    let engine: Engine | undefined
    if (engines.length < fits) engines.push((engine = { model, readyAt: 0, slots: [], lastUsed: 0 }))
    else engine = engines.filter(one => freeAt(one) <= now).sort((a, b) => a.lastUsed - b.lastUsed)[0]
    if (!engine) return undefined
    const readyAt = now + loadMs
    loads.push(now)
    return Object.assign(engine, { model, readyAt, slots: Array(workload.slots).fill(readyAt), lastUsed: readyAt })
  }
  function begin(engine: Engine, at: number): void {
    const slot = engine.slots.indexOf(Math.min(...engine.slots))
    const begun = Math.max(now, engine.slots[slot]!)
    begins[at] = begun
    engine.slots[slot] = engine.lastUsed = begun + serviceMs
  }
  function step(): void {
    for (let at = 0; at < queue.length; ) {
      const { model } = arrivals[queue[at]!]!
      const loaded = engines.find(one => one.model === model)
      const isFull = policy === 'first-come' && loaded && Math.min(...loaded.slots) > now
      const engine = isFull ? undefined : (loaded ?? load(model))
      if (engine) begin(engine, queue.splice(at, 1)[0]!)
      else if (policy === 'first-come') return
      else at++
    }
  }
  for (let next = 0; next < arrivals.length || queue.length > 0; ) {
    while (next < arrivals.length && arrivals[next]!.at <= now) queue.push(next++)
    step()
    let later = next < arrivals.length ? arrivals[next]!.at : Number.POSITIVE_INFINITY
    if (queue.length > 0)
      for (const { slots } of engines) for (const at of slots) if (at > now && at < later) later = at
    if (!Number.isFinite(later)) break
    now = later
  }
  return { begins, loads }
}
