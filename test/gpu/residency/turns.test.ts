import { describe, expect, test } from 'vitest'
import { defaultRules } from '../../../gpu/residency/effects.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { openResidency } from '../../../gpu/residency/residency.ts'
import { openCallers } from '../_callers.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'

const turnMs = 10_000
const loadMs = 2_000

/** Requests of one model: `count` at `at`, and from then on one every `everyMs` until the end. */
interface Traffic {
  id: string
  gigabytes: number
  at?: number
  count?: number
  everyMs?: number
  serviceMs?: number
  background?: boolean
}

/**
 * Runs the traffic on a card of 24 GiB in virtual time, in steps of 100 ms. Every engine takes `loadMs` to load and
 * works on one request at a time, for `serviceMs` (200). Returns how many requests each load has served, in order.
 */
function served(traffic: readonly Traffic[], seconds: number): string {
  const capacities: DeviceCapacity[] = [{ id: 'gpu0', kind: 'nvidia', capacity: 24 * GiB }]
  const events: { at: number; act(): void }[] = []
  const loads: { engineId: string; model: string; served: number }[] = []
  let now = 0
  let engines = 0
  let wakeAt = Number.POSITIVE_INFINITY
  const after = (ms: number, act: () => void): void => void events.push({ at: now + ms, act })
  const callers = openCallers(() => now)
  const residency = openResidency(
    {
      now: () => now,
      start({ engineId, serves }) {
        loads.push({ engineId, model: serves.model.id, served: 0 })
        after(loadMs, () => residency.ready(engineId))
      },
      settle: ({ engineId }) => after(100, () => residency.settled(engineId)),
      stop: ({ engineId }) => after(100, () => residency.exited(engineId, 'stopped')),
      wake: at => void (wakeAt = at),
      newEngineId: () => `e${++engines}`,
    },
    () => capacities,
    callers.queue,
    { ...defaultRules, turnMs },
  )
  callers.attach(residency)
  for (const { id, gigabytes, at = 0, count = 1, everyMs, serviceMs = 200, background = false } of traffic) {
    const state = residency.upsert(modelOf(id, { idle_ttl: 0 }), wantedOf(id, gigabytes), 1)
    const ask = (): void =>
      void callers.ask(
        state,
        Number.POSITIVE_INFINITY,
        {
          grant(resident) {
            loads.find(({ engineId }) => engineId === resident.engineId)!.served++
            after(serviceMs, () => residency.release(resident, serviceMs))
          },
          refuse: failure => expect(failure).toBeUndefined(),
        },
        background,
      )
    for (let n = 0; n < count; n++) events.push({ at, act: ask })
    for (let next = at + (everyMs ?? Infinity); next < seconds * 1_000; next += everyMs!)
      events.push({ at: next, act: ask })
  }
  for (; now < seconds * 1_000; now += 100) {
    for (let next = events.findIndex(({ at }) => at <= now); next >= 0; next = events.findIndex(({ at }) => at <= now))
      events.splice(next, 1)[0]!.act()
    if (wakeAt <= now) {
      wakeAt = Number.POSITIVE_INFINITY
      residency.tick()
    }
  }
  return loads.map(({ model, served }) => model + served).join(' ')
}

describe('models that share memory take turns', () => {
  const equal = ['a', 'b', 'c'].map((id, n) => ({ id, gigabytes: 20, at: n * 100, count: 5, everyMs: 700 }))
  const behind: Traffic[] = [
    { id: 'jobs', gigabytes: 20, count: 100, background: true },
    { id: 'chat', gigabytes: 20, at: 1_000 },
  ]
  const backlog: Traffic[] = [
    { id: 'a', gigabytes: 20, count: 200 },
    { id: 'b', gigabytes: 20, count: 200 },
    { id: 'c', gigabytes: 20, at: 5_000, count: 1 },
  ]
  const wide: Traffic[] = [
    ...['a', 'b', 'c', 'd'].map(id => ({ id, gigabytes: 11, count: 200 })),
    { id: 'wide', gigabytes: 20, at: 5_000 },
  ]
  const besideFree: Traffic[] = [
    { id: 'a', gigabytes: 11, count: 9, serviceMs: 5_000 },
    { id: 'large', gigabytes: 20, at: 1_000 },
    { id: 'tiny', gigabytes: 4, at: 12_500 },
    { id: 'small', gigabytes: 5, at: 12_500 },
  ]
  const besideVideo: Traffic[] = [
    { id: 'chat', gigabytes: 11, everyMs: 700 },
    { id: 'video', gigabytes: 11, count: 2, serviceMs: 30_000 },
    { id: 'large', gigabytes: 20, at: 5_000 },
  ]
  const manyShort: Traffic[] = [
    { id: 'chat', gigabytes: 11, count: 200 },
    { id: 'image', gigabytes: 11, count: 10, serviceMs: 4_000 },
    { id: 'large', gigabytes: 20, at: 5_000 },
  ]
  test.each<[rule: string, traffic: Traffic[], loads: string]>([
    [
      'a turn begins when the engine is ready, however long the next model has waited',
      equal,
      'a10 b18 c30 a33 b39 c42 a45 b0',
    ],
    [
      'a ready engine serves its requests before another model is loaded, however urgent that is',
      behind,
      'jobs51 chat1 jobs49',
    ],
    ['a model with a long queue is loaded again after the others that wait', backlog, 'a51 b51 c1 a51 b51 a30'],
    [
      'engines that together make room for a large model are given to no other meanwhile',
      wide,
      'a51 b51 c51 d51 wide1 a51 b51 c51 d51 a30 b30',
    ],
    ['nor is the free memory that it needs besides', besideFree, 'a3 tiny1 large1 small1 a6'],
    [
      'while a request that takes longer than a turn ends, the other engines serve; then all make room',
      besideVideo,
      'chat46 video1 large1 video1 chat40',
    ],
    ['engines with shorter requests make room together', manyShort, 'chat66 image4 large1 chat134 image6'],
  ])('%s', (_rule, traffic, loads) => expect(served(traffic, 60)).toBe(loads))
})
