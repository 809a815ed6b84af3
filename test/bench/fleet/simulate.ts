import { openDispatch } from '../../../core/jobs/dispatch.ts'
import { openQueue } from '../../../core/jobs/queue.ts'
import { openSuspects } from '../../../core/jobs/suspects.ts'
import { openWaitingCalls } from '../../../core/jobs/waiting-calls.ts'
import type { Lease, SlotQueue } from '../../../core/models/fleet.ts'
import { Model } from '../../../core/models/model.ts'
import type { WaitingJob } from '../../../core/store/store.ts'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import type { Resident } from '../../../gpu/residency/model-state.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { openResidency, type Residency } from '../../../gpu/residency/residency.ts'
import { openEvents } from './events.ts'
import type { Run } from './policies.ts'
import type { Workload } from './workloads.ts'

const GiB = 2 ** 30

/** Engines that can be parked: how long that and waking take, and how many the main memory has room for. */
export interface SimulatedParking {
  parkMs: number
  wakeMs: number
  engines: number
}

/** Bytes of the card that a parked engine of the simulation keeps, and of the main memory. */
const parked = { cardBytes: 1.5 * GiB, hostBytes: 27 * GiB }

/**
 * Runs a workload on the queue, the dispatch and the residency of the product, in virtual time, on room for `fits` models and
 * for what parked ones keep. `loadsAhead`: the residency knows what runs need next.
 */
export function simulate(
  workload: Workload,
  fits: number,
  orderBound: number,
  { loadsAhead = true, parking }: { loadsAhead?: boolean; parking?: SimulatedParking | undefined } = {},
): Run {
  const { arrivals, models, loadMs, serviceMs, slots } = workload
  const begins: number[] = []
  const loads: number[] = []
  let wakes = 0
  const events = openEvents()
  let engines = 0
  let connected: SlotQueue
  const capacities: DeviceCapacity[] = [
    { id: 'gpu0', kind: 'gpu', capacity: fits * 20 * GiB + models * parked.cardBytes },
    { id: 'cpu', kind: 'cpu', capacity: models * parked.hostBytes },
  ]
  const named = Array.from({ length: models }, (_, at) =>
    Model.parse({ id: `m${at}`, engine: 'custom', command: ['{port}'], idle_ttl: 0, concurrency: slots }),
  )
  const queue = openQueue({ weightOf: () => 1, now: events.now })
  const calls = openWaitingCalls({ queue, now: events.now })
  const residency: Residency = openResidency(
    {
      now: events.now,
      start(resident) {
        loads.push(events.now())
        events.after(loadMs, () => residency.ready(resident.engineId, parking ? parked : null))
      },
      ...(parking && {
        park: ({ engineId }) => events.after(parking.parkMs, () => residency.parked(engineId, parking.parkMs, null)),
        unpark({ engineId }) {
          wakes++
          events.after(parking.wakeMs, () => residency.ready(engineId))
        },
        parkingBudget: () => parking.engines * parked.hostBytes,
      }),
      settle: ({ engineId }) => events.after(0, () => residency.settled(engineId)),
      stop: ({ engineId }) => events.after(0, () => residency.exited(engineId, 'stopped')),
      wake: at => events.wake(at, () => residency.tick()),
      newEngineId: () => `e${++engines}`,
    },
    () => capacities,
    {
      waits: id => connected.waits(id),
      demand: id => connected.demand(id),
      serve: id => connected.serve(id),
      refuse: (id, failure, withinMs) => connected.refuse(id, failure, withinMs),
      get reference() {
        return connected.reference
      },
    },
    { ...defaultRules, orderBound },
  )
  const residents = new Map<Lease, Resident>()
  const take = (id: string): Lease | undefined => {
    const resident = residency.take(id)
    if (!resident) return undefined
    const lease = { engineId: resident.engineId, modelId: id } as Lease
    residents.set(lease, resident)
    return lease
  }
  const dispatch = openDispatch({
    fleet: {
      take,
      slots: () => ({ ready: slots, planned: slots }),
      demandChanged: id => residency.demandChanged(residency.find(id)!),
      connect: slotQueue => void (connected = slotQueue),
    },
    find: id => named.find(model => model.id === id),
    queue,
    calls,
    refill: { wake() {}, now: () => Promise.resolve() } as never,
    suspects: openSuspects(),
    log: { info() {}, warn() {}, error() {} } as never,
    begin: (entry, lease) =>
      run(Number(entry.job.id), lease as Lease, () => {
        queue.ran(entry, serviceMs)
        dispatch.freed(entry.job.modelId)
      }),
    unwritten: () => 0,
    slots: 256,
    slotsPerModel: 256,
  })
  for (const model of named) {
    const placement = { modelId: model.id, bytes: 20 * GiB, devices: 1, kind: 'gpu' as const }
    const state = residency.upsert(model, placement, slots)
    state.durations.loadMs = loadMs
    state.durations.runMs = serviceMs
  }

  /** The requests that come after the end of another. */
  const following = Map.groupBy(arrivals.keys(), at => arrivals[at]!.after)

  /** How many runs need each model next, as the server counts them: after a request that waits or runs. */
  const upcoming = new Map<string, number>()
  function count(next: readonly number[], by: 1 | -1): void {
    if (!loadsAhead || next.length === 0) return
    const before = upcoming.size
    for (const at of next) {
      const id = `m${arrivals[at]!.model}`
      const runs = (upcoming.get(id) ?? 0) + by
      if (runs === 0) upcoming.delete(id)
      else upcoming.set(id, runs)
    }
    if (upcoming.size !== before) residency.upcoming(upcoming)
  }

  function run(at: number, lease: Lease, ended: () => void): void {
    begins[at] = events.now()
    events.after(serviceMs, () => {
      residency.release(residents.get(lease)!, serviceMs)
      residents.delete(lease)
      const next = following.get(at) ?? []
      count(next, -1)
      for (const one of next) arrive(one)
      ended()
    })
  }
  function arrive(at: number): void {
    const { model, kind } = arrivals[at]!
    const modelId = `m${model}`
    const job: WaitingJob = {
      id: `${at}`,
      modelId,
      rank: at,
      organizationId: kind,
      class: kind === 'chat' ? 'interactive' : kind === 'node' ? 'workflow' : 'async',
    }
    if (kind !== 'chat') {
      queue.offer(job)
      dispatch.check(modelId)
      return count(following.get(at) ?? [], 1)
    }
    const free = dispatch.takeFree(modelId)
    if (free) return run(at, free, () => dispatch.check(modelId))
    calls.add({
      job,
      since: events.now(),
      deadline: Number.POSITIVE_INFINITY,
      granted: ({ lease, entry }) => run(at, lease, () => queue.ran(entry, serviceMs)),
      refused(failure) {
        throw failure
      },
    })
    dispatch.check(modelId)
  }
  for (const [at, { at: time, after }] of arrivals.entries()) if (after === undefined) events.at(time, () => arrive(at))
  events.run()
  return { begins, loads, wakes }
}
