import { describe, expect, test } from 'vitest'
import type { Resident } from '../../../gpu/residency/model-state.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'
import { openVirtualFleet } from './_virtual-fleet.ts'

const orderBound = 5
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
 * Runs the traffic on a card of 24 GiB in virtual time. Every engine takes `loadMs` to load and works on one request at a
 * time, for `serviceMs` (200). Returns how many requests each load has served, in order.
 */
function served(traffic: readonly Traffic[], seconds: number): string {
  const loads: { engineId: string; model: string; served: number }[] = []
  const fleet = openVirtualFleet({
    capacities: [{ id: 'gpu0', kind: 'gpu', capacity: 24 * GiB }],
    orderBound,
    loadMs,
    started: ({ engineId, serves }) => void loads.push({ engineId, model: serves.model.id, served: 0 }),
  })
  for (const { id, gigabytes, at = 0, count = 1, everyMs, serviceMs = 200, background = false } of traffic) {
    const state = fleet.residency.upsert(modelOf(id, { idle_ttl: 0 }), wantedOf(id, gigabytes), 1)
    state.durations.loadMs = loadMs
    const granted = (resident: Resident): void =>
      void loads.find(({ engineId }) => engineId === resident.engineId)!.served++
    const ask = (): void => fleet.ask(state, { serviceMs, background, granted })
    for (let n = 0; n < count; n++) fleet.at(at, ask)
    for (let next = at + (everyMs ?? Infinity); next < seconds * 1_000; next += everyMs!) fleet.at(next, ask)
  }
  fleet.run(seconds * 1_000)
  return loads.map(({ model, served }) => model + served).join(' ')
}

describe('models that share memory take turns', () => {
  const equal = ['a', 'b', 'c'].map((id, n) => ({ id, gigabytes: 20, at: n * 100, count: 5, everyMs: 700 }))
  const behind: Traffic[] = [
    { id: 'jobs', gigabytes: 20, count: 100, background: true },
    { id: 'chat', gigabytes: 20, at: 1_000 },
  ]
  const backlog: Traffic[] = [
    { id: 'a', gigabytes: 20, count: 20, everyMs: 210 },
    { id: 'b', gigabytes: 20, at: 100, everyMs: 5_000 },
    { id: 'c', gigabytes: 20, at: 5_000 },
  ]
  const wide: Traffic[] = [
    ...['a', 'b', 'c', 'd'].map(id => ({ id, gigabytes: 11, count: 20, everyMs: 500 })),
    { id: 'wide', gigabytes: 20, at: 5_000 },
  ]
  const besideFree: Traffic[] = [
    { id: 'a', gigabytes: 11, everyMs: 5_000, serviceMs: 5_000 },
    { id: 'large', gigabytes: 20, at: 1_000 },
    { id: 'tiny', gigabytes: 4, at: 15_000 },
    { id: 'small', gigabytes: 5, at: 15_000 },
  ]
  const besideVideo: Traffic[] = [
    { id: 'chat', gigabytes: 11, everyMs: 700 },
    { id: 'video', gigabytes: 11, count: 2, serviceMs: 30_000 },
    { id: 'large', gigabytes: 20, at: 5_000 },
  ]
  const manyShort: Traffic[] = [
    { id: 'chat', gigabytes: 11, everyMs: 210 },
    { id: 'image', gigabytes: 11, everyMs: 1_600, serviceMs: 1_500 },
    { id: 'large', gigabytes: 20, at: 5_000 },
  ]
  test.each<[rule: string, traffic: Traffic[], loads: string]>([
    [
      'a ready engine serves at least what waits for it, however late the next model is',
      equal,
      'a10 b18 c30 a33 b39 c42 a45 b0',
    ],
    [
      'background work makes room for a chat that is too far behind, and goes on after it',
      behind,
      'jobs56 chat1 jobs44',
    ],
    ['a model with a long queue is loaded again after the others that wait', backlog, 'a81 b5 c1 a114 b6 a28'],
    [
      'engines that together make room for a large model are given to no other meanwhile',
      wide,
      'a39 b39 c72 d72 a38 b38 wide1 c48 d48 a37 b37',
    ],
    ['nor is the free memory that it needs besides', besideFree, 'a3 tiny1 large1 a8 small1'],
    [
      'while a request that takes longer than the load ends, the other engines serve; then all make room',
      besideVideo,
      'chat46 video1 large1 video1 chat40',
    ],
    ['engines with shorter requests make room together', manyShort, 'chat116 image16 large1 chat147 image20'],
  ])('%s', (_rule, traffic, loads) => expect(served(traffic, 60)).toBe(loads))
})
