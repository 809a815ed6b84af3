import { describe, expect, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import { defaultRules, type Step } from '../../../gpu/residency/advance.ts'
import { loadAhead, upcomingText, waitsForMemory } from '../../../gpu/residency/load-ahead.ts'
import { type ModelState, newModelState } from '../../../gpu/residency/model-state.ts'
import { newResident } from '../../../gpu/residency/new-resident.ts'
import type { DeviceCapacity, Occupant, PlacementRequest } from '../../../gpu/residency/place.ts'
import { openVirtualFleet } from './_virtual-fleet.ts'

const GiB = 2 ** 30
const gpu = (id: string, gigabytes: number, more: Partial<DeviceCapacity> = {}): DeviceCapacity => ({
  id,
  kind: 'gpu',
  capacity: gigabytes * GiB,
  ...more,
})
const modelOf = (id: string, more: object = {}) =>
  Model.parse({ id, engine: 'custom', command: ['{port}'], idle_ttl: 0, ...more })
const placementOf = (modelId: string, gigabytes = 10, more: Partial<PlacementRequest> = {}) => ({
  modelId,
  bytes: gigabytes * GiB,
  devices: 1,
  kind: 'gpu' as const,
  ...more,
})
const on = (engineId: string, device: string, gigabytes: number): Occupant => ({
  engineId,
  modelId: engineId,
  devices: [device],
  bytes: gigabytes * GiB,
  busy: false,
  pinned: false,
  turnSince: 0,
  turnUntil: null,
  reloadMs: 1_000,
  lastUsedAt: 0,
  runMs: null,
})
const stateOf = (id: string, change: Partial<ModelState> = {}, more: Partial<PlacementRequest> = {}): ModelState =>
  Object.assign(newModelState(modelOf(id), placementOf(id, 10, more), 1), change)
const loaded = (id: string): ModelState => {
  const state = stateOf(id)
  state.residents.push(newResident(state, `${id}-engine`, { devices: ['a'] }, 0))
  return state
}
const paused = { pause: { endsInMs: null, text: 'is paused' } }
const failures = { count: 1, retryAt: 0, reason: 'It ended.' }

describe('the model that is loaded ahead', () => {
  test.each<[rule: string, states: ModelState[], runs: Record<string, number>, there: Occupant[], expected: unknown]>([
    ['is one that fits into free memory', [stateOf('x')], { x: 1 }, [on('o', 'a', 10)], ['x', 'a']],
    ['is the one that most runs need', [stateOf('x'), stateOf('y')], { x: 1, y: 3 }, [], ['y', 'a']],
    [
      'is the next one where that has no room',
      [stateOf('x', {}, { bytes: 30 * GiB }), stateOf('y')],
      { x: 2, y: 1 },
      [],
      ['y', 'a'],
    ],
    ['evicts no idle engine', [stateOf('x')], { x: 9 }, [on('o', 'a', 20)], undefined],
    ['is not one that is loaded', [loaded('x')], { x: 1 }, [], undefined],
    ['is not one that was loaded ahead in vain', [stateOf('x', { wasLoadedAhead: true })], { x: 1 }, [], undefined],
    ['is not one that was unloaded by hand', [stateOf('x', { unloaded: true })], { x: 1 }, [], undefined],
    ['is not one whose last start failed', [stateOf('x', { failures })], { x: 1 }, [], undefined],
    ['is not one of another machine', [stateOf('x', {}, { kind: 'none' })], { x: 1 }, [], undefined],
    ['is not one that can never be loaded', [stateOf('x', {}, { impossible: 'Never.' })], { x: 1 }, [], undefined],
  ])('%s', (_, states, runs, there, expected) => {
    const next = loadAhead(states, id => runs[id] ?? 0, there, [gpu('a', 24)])
    expect(next && [next.state.model.id, ...next.where.devices]).toEqual(expected)
  })

  test('is never loaded on a paused device', () => {
    expect(loadAhead([stateOf('x')], () => 1, [], [gpu('a', 24, paused)])).toBeUndefined()
    expect(loadAhead([stateOf('x')], () => 1, [], [gpu('a', 24, paused), gpu('b', 24)])?.where.devices).toEqual(['b'])
  })
})

const reserve = { modelId: 'x', engines: [], free: [] }
test.each<[Step, boolean]>([
  [{ do: 'nothing' }, false],
  [{ do: 'continue' }, false],
  [{ do: 'refuse', reason: '', refuse: 'all' }, false],
  [{ do: 'load', devices: ['a'], evict: [] }, false],
  [{ do: 'back off', until: 1, refuse: 'none' }, true],
  [{ do: 'wait', reason: '', for: ['e'], until: null, reserve: null }, true],
  [{ do: 'wait', reason: '', for: [], until: null, reserve: null }, true],
  [{ do: 'wait', reason: '', for: [], until: null, reserve: null, pause: { endsInMs: null } }, false],
  [{ do: 'drain', reason: '', for: ['e'], drain: ['e'], reserve }, true],
])('a model with the step %o waits for memory: %s', (step, expected) => expect(waitsForMemory(step)).toBe(expected))

test.each([
  [0, undefined, null],
  [1, undefined, 'To be loaded ahead for 1 run that needs it next, in memory that nobody waits for.'],
  [2, { ahead: true, state: 'starting' }, 'Loading ahead for 2 runs that need it next.'],
  [2, { ahead: true, state: 'ready' }, 'Loaded ahead for 2 runs that need it next.'],
  [
    3,
    { ahead: false, state: 'ready' },
    'Kept for 3 runs that need it next: of engines that cost the same, it is unloaded last.',
  ],
] as const)('%d runs and %o: %s', (runs, engine, text) => expect(upcomingText(runs, engine)).toBe(text))

describe('in a fleet', () => {
  const loadMs = 20_000
  function open(gigabytes: number, ids: readonly string[], more: object = {}) {
    const loads: string[] = []
    const capacities = [gpu('a', gigabytes)]
    const fleet = openVirtualFleet({
      capacities,
      orderBound: defaultRules.orderBound,
      loadMs,
      started: ({ serves }) => loads.push(`${fleet.now()} ${serves.model.id}`),
    })
    const states = ids.map(id => {
      const state = fleet.residency.upsert(modelOf(id, more), placementOf(id), 1)
      state.durations.loadMs = loadMs
      return state
    })
    const live = () => fleet.residency.residents().map(({ serves, state }) => `${serves.model.id} ${state}`)
    return {
      fleet,
      loads,
      states,
      live,
      capacities,
      pause: (isPaused: boolean): void => {
        capacities[0] = gpu('a', gigabytes, isPaused ? paused : {})
        fleet.residency.pausesChanged({ atOnce: false })
      },
      next: (runs: Record<string, number>) => fleet.residency.upcoming(new Map(Object.entries(runs))),
    }
  }

  test('a load ahead begins when no other model is being loaded, and leaves at once for a request', () => {
    const { fleet, loads, states, live, next } = open(24, ['x', 'y', 'z'])
    fleet.ask(states[0]!, { serviceMs: 5_000 })
    next({ y: 1 })
    expect(loads).toEqual(['0 x'])
    fleet.run(20_001)
    expect(loads).toEqual(['0 x', '20000 y'])
    // While it is being loaded it makes room for a request: it is neither waited for nor kept.
    let begun = 0
    fleet.at(21_000, () => fleet.ask(states[2]!, { serviceMs: 1_000, granted: () => void (begun = fleet.now()) }))
    fleet.run(21_050)
    expect(live()).toEqual(['x ready', 'y stopping', 'z starting'])
    fleet.run(45_000)
    expect(begun).toBeGreaterThan(21_000)
    expect(begun).toBeLessThanOrEqual(21_000 + loadMs + 500)
    // It was evicted: it is not loaded ahead again before it is requested, or before no run needs it any more.
    expect(loads).toHaveLength(3)
  })

  test('of equal engines, the one that a run needs next stays', () => {
    const { fleet, states, live, next } = open(24, ['x', 'y', 'z'])
    // `x` is used before `y`: without the run it would leave.
    fleet.ask(states[0]!, { serviceMs: 1_000, completed: () => fleet.ask(states[1]!, { serviceMs: 1_000 }) })
    fleet.run(60_000)
    next({ x: 1 })
    fleet.ask(states[2]!, { serviceMs: 1_000 })
    expect(live()).toEqual(['x ready', 'y stopping', 'z starting'])
  })

  test.each([
    ['while it starts', 10_000, 'x starting'],
    ['when it is ready', 30_000, 'x ready'],
  ])('one that leaves for a pause %s is loaded ahead again for the same run', (_, at, before) => {
    const { fleet, loads, live, next, pause } = open(24, ['x'])
    next({ x: 1 })
    fleet.at(at, () => {
      expect(live()).toEqual([before])
      pause(true)
    })
    fleet.at(60_000, () => {
      expect(live()).toEqual([])
      pause(false)
    })
    fleet.run(100_000)
    expect(live()).toEqual(['x ready'])
    expect(loads).toEqual(['0 x', '60000 x'])
  })

  test('one whose device has a fault is loaded ahead again elsewhere', () => {
    const { fleet, loads, live, next, capacities } = open(24, ['x'])
    next({ x: 1 })
    fleet.run(30_000)
    capacities.splice(0, 1, gpu('a', 24, { fault: 'It is lost.' }), gpu('b', 24))
    fleet.residency.deviceFailed('a', 'It is lost.', false)
    fleet.run(60_000)
    expect(live()).toEqual(['x ready'])
    expect(loads).toHaveLength(2)
  })

  test('an engine that a run needs next outlives its idle_ttl, until no run needs it', () => {
    const { fleet, states, live, next } = open(24, ['x'], { idle_ttl: '10s' })
    fleet.ask(states[0]!, { serviceMs: 1_000 })
    next({ x: 1 })
    fleet.run(60_000)
    expect(live()).toEqual(['x ready'])
    fleet.at(61_000, () => next({}))
    fleet.run(62_000)
    expect(live()).toEqual([])
  })

  test('nothing is loaded ahead while a model waits for memory', () => {
    const { fleet, loads, states, next } = open(24, ['x', 'y', 'small'])
    states[1]!.placement = placementOf('y', 20)
    states[2]!.placement = placementOf('small', 2)
    fleet.ask(states[0]!, { serviceMs: 60_000 })
    fleet.run(20_001)
    fleet.ask(states[1]!, { serviceMs: 1_000 })
    next({ small: 1 })
    fleet.run(70_000)
    expect(loads).toEqual(['0 x'])
    fleet.run(120_000)
    expect(loads.map(load => load.split(' ')[1])).toEqual(['x', 'y', 'small'])
  })
})
