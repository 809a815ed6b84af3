import { onTestFinished, vi } from 'vitest'
import type { Failure } from '../../../core/failure.ts'
import { openDispatch } from '../../../core/jobs/dispatch.ts'
import { openQueue, type RunningEntry } from '../../../core/jobs/queue.ts'
import { openSuspects } from '../../../core/jobs/suspects.ts'
import { openWaitingCalls } from '../../../core/jobs/waiting-calls.ts'
import { openLog } from '../../../core/log.ts'
import type { Lease, SlotQueue } from '../../../core/models/fleet.ts'
import { Model } from '../../../core/models/model.ts'
import { waiting } from './_queue.ts'

interface SimulatedEngine {
  readonly modelId: string
  readonly slots: number
  readonly running: Set<string>
  readonly requests: Set<SimulatedRequest>
  alone: boolean
  heldUntil: number
}

export interface SimulatedRequest {
  readonly id: string
  readonly arrivedAt: number
  startedAt: number
  endedAt: number
  /** Until when it was the only request of its engine. */
  aloneUntil: number
}

/** A queue and engines that run for as long as they are told, on a clock that the test moves with `pass`. */
export function simulatedEngines(models: Record<string, { engines: number; slots: number }>) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const now = () => performance.now()
  const engines: SimulatedEngine[] = []
  for (const [modelId, { engines: count, slots }] of Object.entries(models))
    for (let at = 0; at < count; at++)
      engines.push({
        modelId,
        slots,
        running: new Set(),
        requests: new Set(),
        alone: false,
        heldUntil: Number.NEGATIVE_INFINITY,
      })
  const requests = new Map<string, SimulatedRequest & { ms: number }>()
  const queue = openQueue({ weightOf: () => 1 })
  const calls = openWaitingCalls({ queue })
  const suspects = openSuspects()
  let connected!: SlotQueue
  let arrived = 0
  const serve = (modelId: string) => connected.waits(modelId) && connected.serve(modelId)

  function take(modelId: string, _waitedMs?: number, alone?: { holdMs: number }): Lease | undefined {
    const own = engines.filter(engine => engine.modelId === modelId)
    const byLoad = own.toSorted((a, b) => a.running.size - b.running.size)
    const engine = byLoad.find(
      one => !one.alone && (alone ? one.running.size === 0 : one.heldUntil <= now() && one.running.size < one.slots),
    )
    if (!engine) {
      if (alone && !own.some(one => one.alone || one.heldUntil > now())) byLoad[0]!.heldUntil = now() + alone.holdMs
      return undefined
    }
    if (alone) engine.alone = true
    const name = `slot${++arrived}`
    engine.running.add(name)
    const share = () => {
      engine.alone = false
      serve(modelId)
    }
    const release = () => {
      engine.running.delete(name)
      share()
    }
    return { engineId: String(engines.indexOf(engine)), modelId, share, release, engine } as unknown as Lease
  }

  function run(entry: RunningEntry, lease: Lease, after: () => void): void {
    const request = requests.get(entry.job.id)!
    const { engine } = lease as unknown as { engine: SimulatedEngine }
    request.startedAt = now()
    engine.requests.add(request)
    if (engine.requests.size > 1) for (const one of engine.requests) one.aloneUntil = Math.min(one.aloneUntil, now())
    setTimeout(() => {
      request.endedAt = now()
      engine.requests.delete(request)
      request.aloneUntil = Math.min(request.aloneUntil, now())
      queue.ran(entry, request.ms)
      dispatch.suspectLeft(lease.modelId, entry.job.id)
      lease.release()
      suspects.ended(entry.job.id)
      after()
    }, request.ms)
  }

  const dispatch = openDispatch({
    fleet: {
      take,
      slots: modelId => {
        const ready = engines.filter(one => one.modelId === modelId).reduce((sum, { slots }) => sum + slots, 0)
        return { ready, planned: ready }
      },
      demandChanged: serve,
      connect: slotQueue => void (connected = slotQueue),
    },
    find: id => Model.parse({ id }),
    queue,
    calls,
    suspects,
    refill: {
      begin: async () => {},
      wake() {},
      now: () => Promise.reject(new Error('Nothing is stored here')),
      close: async () => {},
    },
    log: openLog('error'),
    begin: (entry, slot) => run(entry, slot as Lease, () => dispatch.freed(entry.job.modelId)),
    unwritten: () => 0,
    slots: 64,
    slotsPerModel: 64,
  })

  /** Sends a request that takes this long. */
  function send(id: string, ms: number, { modelId = 'm', job = false } = {}): SimulatedRequest {
    const request = {
      id,
      ms,
      arrivedAt: now(),
      startedAt: Number.POSITIVE_INFINITY,
      endedAt: Number.POSITIVE_INFINITY,
      aloneUntil: Number.POSITIVE_INFINITY,
    }
    requests.set(id, request)
    const entry = waiting(id, 'org', ++arrived, modelId, job ? 'async' : 'interactive')
    if (job) queue.offer(entry)
    else {
      const granted = (slot: { lease: Lease; entry: RunningEntry }) => run(slot.entry, slot.lease, () => {})
      const refused = (failure: Failure) => {
        throw failure
      }
      calls.add({ job: entry, since: now(), deadline: Number.POSITIVE_INFINITY, granted, refused })
    }
    dispatch.check(modelId)
    return request
  }

  return {
    send,
    queue,
    /** These ran together when an engine ended, after so many milliseconds. */
    crashed(ids: readonly string[], ranMs = 20, engineId = 'gone'): void {
      for (const id of ids) suspects.failed(id, { engineId, othersAtEnd: ids.length - 1, ranMs })
    },
    /** It ended an engine alone. */
    crashedAlone: (id: string): void => void suspects.failed(id, { engineId: `of ${id}`, othersAtEnd: 0, ranMs: 20 }),
    /** Lets so many milliseconds pass, and calls `each` at the beginning of every `stepMs` of them. */
    pass(ms: number, each: () => void = () => {}, stepMs = 100): void {
      for (let at = 0; at < ms; at += stepMs) {
        each()
        vi.advanceTimersByTime(stepMs)
      }
    },
  }
}
