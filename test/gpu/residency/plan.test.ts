import { describe, expect, test } from 'vitest'
import type { Demand } from '../../../core/models/fleet.ts'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import { type ModelState, newModelState, noDurations, type Resident } from '../../../gpu/residency/model-state.ts'
import { newResident } from '../../../gpu/residency/new-resident.ts'
import type { DeviceCapacity, PlacementRequest } from '../../../gpu/residency/place.ts'
import { planOf } from '../../../gpu/residency/plan.ts'
import { GiB, longerOf, modelOf, wantedOf } from '../_models.ts'
import { openVirtualFleet } from './_virtual-fleet.ts'

const now = 100_000
const gpu = (id: string, gigabytes: number): DeviceCapacity => ({ id, kind: 'gpu', capacity: gigabytes * GiB })

interface Model {
  id: string
  gigabytes: number
  more?: object
  placement?: Partial<PlacementRequest>
  state?: Partial<ModelState>
  /** Its engine, if it has one. */
  on?: string[]
  engine?: Partial<Resident>
  demand?: Partial<Demand>
}

/** The plan for the first of the models. */
function planned(models: readonly Model[], capacities: readonly DeviceCapacity[]) {
  const residents: Resident[] = []
  const demands = new Map<ModelState, Demand>()
  const states = models.map(({ id, gigabytes, more, placement, state, on, engine, demand }) => {
    const one = newModelState(modelOf(id, more), wantedOf(id, gigabytes, placement), 2)
    Object.assign(one, { durations: { ...noDurations, loadMs: 12_000, runMs: 4_000 } }, state)
    if (on)
      one.residents.push(Object.assign(newResident(one, `${id}-engine`, { devices: on }, now - 60_000), ready, engine))
    residents.push(...one.residents)
    const none = { interactive: 0, background: 0, oldestWaitMs: 0, expectedWorkMs: null, referenceStart: null }
    if (demand) demands.set(one, { ...none, ...demand })
    return one
  })
  return planOf(states[0]!, null, {
    now,
    demandOf: state => demands.get(state),
    pending: [...demands.keys()],
    residents: () => residents,
    resident: engineId => residents.find(one => one.engineId === engineId),
    capacities,
    runsNext: () => 0,
    rules: defaultRules,
    clearingMs: 500,
  })
}
const starting = { state: 'starting', readyAt: null } as const
const ready: Partial<Resident> = { state: 'ready', readyAt: now - 50_000, lastUsedAt: now - 40_000 }

describe('the plan for a request', () => {
  const again = 'a reload takes about 12 s.'
  test.each<[rule: string, models: Model[], capacities: DeviceCapacity[], expected: object]>([
    [
      'it fits into free memory',
      [{ id: 'x', gigabytes: 10 }],
      [gpu('gpu0', 24)],
      {
        status: 'load',
        detail: "A request loads 'x' on gpu0, which takes about 12 s.",
        etaMs: 12_000,
        evict: [],
        waitsFor: [],
        devices: [{ id: 'gpu0', freeBytes: 24 * GiB, neededBytes: 10 * GiB, engines: [] }],
        figures: {
          bytes: 10 * GiB,
          bytesFrom: 'estimated',
          loadMs: 12_000,
          loadMsFrom: 'measured',
          runMs: 4_000,
          slots: 2,
          orderBound: 10,
        },
      },
    ],
    [
      'it is divided, and why',
      [
        {
          id: 'x',
          gigabytes: 31,
          placement: {
            devices: 2,
            mostDevices: 2,
            split: { each: GiB, layers: Array.from({ length: 58 }, () => GiB / 2), by: 'booked' },
          },
        },
      ],
      [gpu('gpu0', 24), gpu('gpu1', 12)],
      {
        status: 'load',
        detail:
          "A request loads 'x' on gpu0 (20.5 GiB) and gpu1 (10.5 GiB), which takes about 12 s. It is divided, because one GPU would have no room for it.",
        devices: [{ neededBytes: 20.5 * GiB }, { neededBytes: 10.5 * GiB }],
      },
    ],
    [
      'it has a longer context on two cards',
      [{ id: 'x', gigabytes: 20, placement: longerOf('x', 20, 26) }],
      [gpu('gpu0', 24), gpu('gpu1', 24)],
      {
        status: 'load',
        detail:
          "A request loads 'x' on gpu0 (13.0 GiB) and gpu1 (13.0 GiB), which takes about 12 s. It is divided for a context of 32768 tokens: one GPU has room for 16384.",
        devices: [{ neededBytes: 13 * GiB }, { neededBytes: 13 * GiB }],
        figures: { bytes: 26 * GiB, slots: 1 },
        layout: { longer: { tokens: 32_768 } },
      },
    ],
    [
      'which it does not get while another model waits',
      [
        { id: 'x', gigabytes: 20, placement: longerOf('x', 20, 26) },
        { id: 'y', gigabytes: 20, demand: { interactive: 1, oldestWaitMs: 1 } },
      ],
      [gpu('gpu0', 24), gpu('gpu1', 24)],
      { status: 'load', devices: [{ neededBytes: 20 * GiB }, { neededBytes: 0 }], figures: { slots: 2 } },
    ],
    [
      'an idle one is evicted',
      [
        { id: 'x', gigabytes: 20 },
        { id: 'b', gigabytes: 16, on: ['gpu0'] },
      ],
      [gpu('gpu0', 24)],
      {
        status: 'load',
        detail: "A request unloads 'b' and loads 'x' on gpu0, which takes about 12 s.",
        // 'b' ends in half a second.
        etaMs: 12_500,
        evict: [
          {
            engineId: 'b-engine',
            modelId: 'b',
            bytes: 16 * GiB,
            reloadMs: 12_000,
            why: `It is idle, last used about 40 s ago; ${again}`,
          },
        ],
        devices: [{ freeBytes: 8 * GiB, neededBytes: 20 * GiB, engines: [{ modelId: 'b', evicted: true }] }],
      },
    ],
    [
      'a busy one is waited for: half a request of 4 s, then the load',
      [
        { id: 'x', gigabytes: 20 },
        { id: 'b', gigabytes: 16, on: ['gpu0'], engine: { leases: 2 } },
      ],
      [gpu('gpu0', 24)],
      {
        status: 'wait',
        detail: "'x' waits for the memory of 'b'.",
        etaMs: 14_500,
        evict: [{ modelId: 'b' }],
        waitsFor: [{ engineId: 'b-engine', modelId: 'b', why: `It runs 2 requests; ${again}` }],
        devices: [{ neededBytes: 20 * GiB }],
      },
    ],
    [
      'so is one whose turn owes requests, which are served first',
      [
        { id: 'x', gigabytes: 20 },
        { id: 'b', gigabytes: 16, on: ['gpu0'], engine: { leases: 2, owed: 3 }, demand: { interactive: 3 } },
      ],
      [gpu('gpu0', 24)],
      {
        status: 'wait',
        etaMs: 20_500,
        waitsFor: [{ why: `It runs 2 requests and still serves 3 requests that waited for it; ${again}` }],
      },
    ],
    [
      'a model that waits longer is loaded before it, and has reserved the memory',
      [
        { id: 'x', gigabytes: 20 },
        { id: 'first', gigabytes: 23, demand: { interactive: 1, oldestWaitMs: 500_000, referenceStart: -500_000 } },
        { id: 'b', gigabytes: 16, on: ['gpu0'], engine: { leases: 2 } },
      ],
      [gpu('gpu0', 24)],
      {
        status: 'wait',
        detail: "'x' waits for the memory of 'b' and 'first'.",
        // 'b' ends in 2 s, 'first' is there 12.5 s later and serves for 2 s.
        etaMs: 29_000,
        evict: [{ modelId: 'b' }],
        waitsFor: [{ why: 'It is reserved for a model that is loaded first.' }, { engineId: null, modelId: 'first' }],
      },
    ],
    [
      'it is too large',
      [{ id: 'x', gigabytes: 40 }],
      [gpu('gpu0', 24)],
      {
        status: 'refused',
        detail: "'x' needs 40.0 GiB of memory; the most that one GPU here has is 24.0 GiB.",
        etaMs: null,
        devices: [{ freeBytes: 24 * GiB, neededBytes: 0 }],
      },
    ],
    [
      'one that is kept loaded is in the way',
      [
        { id: 'x', gigabytes: 20 },
        { id: 'b', gigabytes: 16, on: ['gpu0'], more: { replicas: { min: 1 } } },
      ],
      [gpu('gpu0', 24)],
      {
        status: 'refused',
        detail:
          "'x' needs 20.0 GiB of memory; beside 'b', which is kept loaded (replicas.min), one GPU here has at most 8.0 GiB.",
        devices: [{ engines: [{ modelId: 'b', keptLoaded: true, evicted: false }] }],
      },
    ],
    [
      'it is being loaded',
      [
        {
          id: 'x',
          gigabytes: 10,
          on: ['gpu0'],
          engine: { ...starting, startedAt: now - 6_000, launchedAt: now - 5_000 },
        },
      ],
      [gpu('gpu0', 24)],
      { status: 'loading', detail: "The model 'x' is being loaded.", etaMs: 7_000, devices: [{ neededBytes: 0 }] },
    ],
    [
      'it is loaded as soon as another engine has ended',
      [{ id: 'x', gigabytes: 10, on: ['gpu0'], engine: { ...starting, startedAt: now - 100 } }],
      [gpu('gpu0', 24)],
      { status: 'loading', etaMs: 12_400 },
    ],
    [
      'its load is overdue by 3 s',
      [{ id: 'x', gigabytes: 10, on: ['gpu0'], engine: { ...starting, launchedAt: now - 15_000 } }],
      [gpu('gpu0', 24)],
      { status: 'loading', etaMs: 3_000 },
    ],
    [
      'it is late: a busy one ends its requests, and not its queue',
      [
        { id: 'x', gigabytes: 20, demand: { interactive: 1, referenceStart: -500_000 } },
        { id: 'b', gigabytes: 16, on: ['gpu0'], engine: { leases: 2 }, demand: { interactive: 50 } },
      ],
      [gpu('gpu0', 24)],
      { status: 'wait', etaMs: 14_500 },
    ],
    [
      'it is late in 3 s, and then the queue of a busy one waits',
      [
        { id: 'x', gigabytes: 20, demand: { interactive: 1, referenceStart: now - 117_000 } },
        { id: 'b', gigabytes: 16, on: ['gpu0'], engine: { leases: 2 }, demand: { interactive: 50 } },
      ],
      [gpu('gpu0', 24)],
      { status: 'wait', etaMs: 17_500 },
    ],
    [
      'it is loaded, and measured larger than its estimate',
      [{ id: 'x', gigabytes: 10, on: ['gpu0'], engine: { leases: 1, bytes: 11 * GiB } }],
      [gpu('gpu0', 24)],
      {
        status: 'ready',
        detail: "'x' is loaded, and a request begins at once.",
        etaMs: 0,
        figures: { bytes: 11 * GiB, bytesFrom: 'measured' },
      },
    ],
    [
      'it is loaded, and its slots are busy',
      [{ id: 'x', gigabytes: 10, on: ['gpu0'], engine: { leases: 2 }, demand: { interactive: 1 } }],
      [gpu('gpu0', 24)],
      { status: 'ready', detail: "All 2 slots of 'x' are busy.", etaMs: 4_000 },
    ],
    [
      'it has the memory for another engine of it, and enough work',
      [
        {
          id: 'x',
          gigabytes: 10,
          more: { replicas: { min: 0, max: 2 } },
          on: ['gpu0'],
          engine: { leases: 2 },
          demand: { interactive: 20, expectedWorkMs: 80_000 },
        },
      ],
      [gpu('gpu0', 24)],
      { status: 'load', detail: "A request loads another engine of 'x' on gpu0, which takes about 12 s." },
    ],
    [
      'its memory is not known',
      [
        {
          id: 'x',
          gigabytes: 24,
          placement: { bytesFrom: 'unknown' },
          state: { durations: noDurations, firstLoad: { ms: 30_000, isLikely: false } },
        },
      ],
      [gpu('gpu0', 24)],
      {
        status: 'load',
        detail:
          "A request loads 'x' on gpu0, which takes about 30 s. Its memory is not known, so 24.0 GiB are reserved; set 'memory' in infer.yaml.",
        figures: { bytesFrom: 'unknown', loadMs: 30_000, loadMsFrom: 'other_models', runMs: null },
      },
    ],
    [
      'it runs elsewhere',
      [{ id: 'x', gigabytes: 0, placement: { kind: 'none', devices: 0 } }],
      [gpu('gpu0', 24)],
      { status: 'load', detail: "A request connects to the server of 'x', and needs no memory here.", devices: [] },
    ],
    [
      'its last start failed',
      [{ id: 'x', gigabytes: 10, state: { failures: { count: 1, retryAt: now + 3_000, reason: 'It exited (3).' } } }],
      [gpu('gpu0', 24)],
      { status: 'wait', detail: "Model 'x' cannot be started: It exited (3).", etaMs: 15_000, evict: [] },
    ],
    [
      'its starts fail again and again',
      [{ id: 'x', gigabytes: 10, state: { failures: { count: 5, retryAt: now + 3_000, reason: 'It exited (3).' } } }],
      [gpu('gpu0', 24)],
      { status: 'refused', detail: "Model 'x' cannot be started: It exited (3).", etaMs: null },
    ],
    [
      'its engine has asked for a pause',
      [{ id: 'x', gigabytes: 10, on: ['gpu0'], engine: { pause: { until: now + 9_000, probing: false } } }],
      [gpu('gpu0', 24)],
      {
        status: 'wait',
        detail: "The engine of 'x' takes no requests for another 9 s, as it has asked (Retry-After).",
        etaMs: 9_000,
      },
    ],
    [
      'the only device with room for it is paused',
      [{ id: 'x', gigabytes: 10 }],
      [{ ...gpu('gpu0', 24), pause: { endsInMs: 60_000, text: 'is paused until then' } }, gpu('gpu1', 8)],
      {
        status: 'wait',
        detail: "'x' waits: gpu0 is paused until then.",
        etaMs: 72_000,
        devices: [
          { id: 'gpu0', paused: 'gpu0 is paused until then.', neededBytes: 10 * GiB },
          { id: 'gpu1', paused: null, neededBytes: 0 },
        ],
      },
    ],
  ])('%s', (_rule, models, capacities, expected) => expect(planned(models, capacities)).toMatchObject(expected))

  test('what the plan says is what happens: the same sentence, time and engines', () => {
    const fleet = openVirtualFleet({ capacities: [gpu('gpu0', 24)], orderBound: 5, loadMs: 2_000 })
    const [b, x] = ['b', 'x'].map(id => {
      const state = fleet.residency.upsert(modelOf(id, { idle_ttl: 0 }), wantedOf(id, 20), 1)
      state.durations.loadMs = 2_000
      return state
    }) as [ModelState, ModelState]
    fleet.at(0, () => fleet.ask(b, { serviceMs: 10_000 }))
    fleet.run(3_000)
    const before = fleet.residency.plan(x)
    expect(before).toMatchObject({ status: 'wait', detail: "'x' waits for the memory of 'b'." })
    expect(fleet.residency.activity(x)).toMatchObject({ reason: null, etaMs: null })
    fleet.at(3_000, () => fleet.ask(x, { serviceMs: 100 }))
    fleet.run(3_001)
    expect(fleet.residency.activity(x)).toMatchObject({ reason: before.detail, etaMs: before.etaMs })
    expect(x.waitsFor).toEqual(before.waitsFor.map(({ engineId }) => engineId))
    fleet.run(12_050)
    expect(x.residents).toMatchObject([{ state: 'starting', devices: before.devices.map(({ id }) => id) }])
  })

  test('so it is whenever a request comes, with other models that load, serve and wait', () => {
    const seen = new Set<string>()
    for (let seed = 1; seed <= 40; seed++) {
      let last = seed
      const random = (below: number): number => (last = (last * 48_271) % 2_147_483_647) % below
      const fleet = openVirtualFleet({
        capacities: [gpu('gpu0', 24), gpu('gpu1', 10)],
        orderBound: 3,
        loadMs: 2_000,
      })
      const states = ['a', 'b', 'c', 'd', 'e'].map((id, at) => {
        const more = { idle_ttl: 0, ...(at === 4 && seed % 4 === 0 ? { replicas: { min: 1 } } : {}) }
        const gigabytes = 5 + random(14)
        const placement = at < 2 && seed % 3 === 0 ? longerOf(id, gigabytes, gigabytes + 6) : wantedOf(id, gigabytes)
        const state = fleet.residency.upsert(modelOf(id, more), placement, 1 + random(3))
        state.durations.loadMs = 2_000
        return state
      })
      fleet.residency.refresh()
      for (let request = 0; request < 40; request++)
        fleet.at(random(60_000), () => {
          const state = states[random(states.length)]!
          const plan = fleet.residency.plan(state)
          const before = fleet.residency.residents().filter(one => one.state !== 'stopping')
          const ask = () => fleet.ask(state, { serviceMs: 100 + random(9_000), background: random(4) === 0 })
          seen.add(plan.status)
          if (plan.status === 'refused') return expect(ask).toThrow(plan.detail)
          ask()
          const own = state.residents.find(one => one.state !== 'stopping')
          const evicted = before.filter(one => one.state === 'stopping').map(({ engineId }) => engineId)
          expect(new Set(evicted)).toEqual(new Set(plan.status === 'load' ? plan.evict.map(one => one.engineId) : []))
          if (plan.status === 'ready') expect(own).toMatchObject({ state: 'ready' })
          else if (plan.status !== 'wait') expect(own).toMatchObject({ state: 'starting' })
          else expect({ own, detail: state.reason }).toEqual({ own: undefined, detail: plan.detail })
          const evict = plan.evict.map(({ engineId }) => engineId)
          const engines = plan.waitsFor.flatMap(({ engineId }) => engineId ?? [])
          expect(evict).toEqual(expect.arrayContaining(engines))
          if (plan.status === 'wait') expect(state.waitsFor).toEqual(expect.arrayContaining(engines))
          if (plan.status === 'load')
            expect(plan.devices.filter(one => one.neededBytes > 0).map(one => one.id)).toEqual(own!.devices)
        })
      fleet.run(60_000)
    }
    expect([...seen].sort((a, b) => a.localeCompare(b))).toEqual(['load', 'loading', 'ready', 'refused', 'wait'])
  })
})
