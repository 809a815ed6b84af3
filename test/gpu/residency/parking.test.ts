import { beforeEach, describe, expect, test } from 'vitest'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import type { ModelState, Resident } from '../../../gpu/residency/model-state.ts'
import { bookingNow, parkedInstead } from '../../../gpu/residency/parking.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { openResidency, type Residency } from '../../../gpu/residency/residency.ts'
import { openCallers } from '../_callers.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'

let done: string[]
let now: number
let budget: number
let capacities: DeviceCapacity[]
let residency: Residency
let callers: ReturnType<typeof openCallers>

beforeEach(() => {
  done = []
  now = 0
  budget = 40 * GiB
  let engines = 0
  capacities = [
    { id: 'gpu0', kind: 'gpu', capacity: 24 * GiB },
    { id: 'cpu', kind: 'cpu', capacity: 64 * GiB },
  ]
  callers = openCallers(() => now)
  residency = openResidency(
    {
      now: () => now,
      start: ({ engineId, serves }) => void done.push(`start ${engineId} ${serves.model.id}`),
      settle: ({ engineId }) => residency.settled(engineId),
      stop: ({ engineId }, reason, kill) => void done.push(`${kill ? 'kill' : 'stop'} ${engineId}: ${reason}`),
      park: ({ engineId }) => void done.push(`park ${engineId}`),
      unpark: ({ engineId }) => void done.push(`wake ${engineId}`),
      parkingBudget: () => budget,
      wake() {},
      newEngineId: () => `e${++engines}`,
    },
    () => capacities,
    callers.queue,
    { ...defaultRules, orderBound: 5 },
  )
  callers.attach(residency)
})

const since = (): string[] => done.splice(0)
const stateOf = (id: string, gigabytes = 20, of: object = {}): ModelState =>
  residency.upsert(modelOf(id, of), wantedOf(id, gigabytes), 2)

/** A request that runs as soon as it gets a slot. */
function ask(state: ModelState): { resident?: Resident; failure?: unknown } {
  const asked: { resident?: Resident; failure?: unknown } = {}
  callers.ask(state, 600_000, {
    grant: resident => void (asked.resident = resident),
    refuse: failure => void (asked.failure = failure),
  })
  return asked
}

/** A model with an idle engine that was loaded in `loadMs`, and can be parked with half of its memory. */
function warm(id: string, { gigabytes = 20, loadMs = 60_000, parks = true, of = {} } = {}): ModelState {
  const state = stateOf(id, gigabytes, of)
  residency.load(state, { loaded() {}, refuse() {} })
  now += loadMs
  const { engineId, bytes } = state.residents[0]!
  residency.ready(engineId, parks ? { hostBytes: bytes / 2, cardBytes: GiB } : null)
  now += 1
  since()
  return state
}

/** Parks `a` for `b`, and makes `b` ready. */
function parkedForAnother(of: Parameters<typeof warm>[1] = {}) {
  const a = warm('a', of)
  const b = stateOf('b')
  const asked = ask(b)
  expect(since()).toEqual(['park e1'])
  now += 2_000
  residency.parked('e1', 2_000, null)
  expect(since()).toEqual(['start e2 b'])
  now += 30_000
  residency.ready('e2', { hostBytes: 10 * GiB, cardBytes: GiB })
  residency.release(asked.resident!, 10)
  return { a, b }
}

test('an idle engine that makes room is parked, keeps a part of its card, and is woken by the next request', () => {
  const { a } = parkedForAnother()
  const [parked] = a.residents
  expect(parked).toMatchObject({
    state: 'parked',
    phase: 'parked',
    devices: ['gpu0', 'cpu'],
    shares: [GiB, 10 * GiB],
    bytes: 11 * GiB,
  })
  expect(residency.take('a')).toBeUndefined()
  const asked = ask(a)
  expect(since()).toEqual(['park e2'])
  residency.parked('e2', 1_500, 0.5 * GiB)
  expect(since()).toEqual(['wake e1'])
  expect(parked).toMatchObject({ state: 'starting', devices: ['gpu0'], shares: [20 * GiB], bytes: 20 * GiB })
  now += 3_000
  residency.ready('e1')
  expect(asked.resident).toBe(parked)
  expect(a.durations).toMatchObject({ loadMs: 60_000, wakeMs: 3_000, parkMs: 2_000 })
  expect(a.away).toEqual({ since: null, usualMs: 32_000 })
  expect(a.engineStarts).toBe(1)
  expect(residency.find('b')!.residents[0]).toMatchObject({ shares: [0.5 * GiB, 10 * GiB] })
})

test('the next wait is expected to take as long as waking took', () => {
  const { a, b } = parkedForAnother()
  const asked = ask(a)
  residency.parked('e2', 1_000, null)
  now += 3_000
  residency.ready('e1')
  residency.release(asked.resident!, 10)
  ask(b)
  residency.parked('e1', 1_000, null)
  since()
  residency.ready('e2')
  now += 1
  expect(residency.plan(a)).toMatchObject({
    figures: { loadMs: 3_000 },
    detail: "'a' waits for the memory of 'b'.",
  })
  residency.release(residency.find('b')!.residents[0]!, 10)
  expect(residency.plan(a).detail).toBe(
    "A request unloads 'b' and wakes the parked engine of 'a' on gpu0, which takes about 3 s.",
  )
})

describe('an engine ends instead', () => {
  const ends = (of: Parameters<typeof warm>[1] = {}, another = 20): string[] => {
    warm('a', of)
    ask(stateOf('b', another))
    return since()
  }
  const stopped = ["stop e1: to make room for 'b'"]

  test('when it was not started so that it can be parked', () => expect(ends({ parks: false })).toEqual(stopped))
  test('when the other model needs what it would keep of the card', () => expect(ends({}, 23.5)).toEqual(stopped))
  test('when the main memory is booked for a model there', () => {
    capacities[1]!.capacity = 9 * GiB
    expect(ends()).toEqual(stopped)
  })
  test('when parked engines may not use as much', () => {
    budget = 9 * GiB
    expect(ends()).toEqual(stopped)
  })
  test('when the card has no memory of its own', () => {
    capacities = [
      { ...capacities[0]!, sharesWith: ['cpu'] },
      { ...capacities[1]!, sharesWith: ['gpu0'] },
    ]
    expect(ends()).toEqual(stopped)
  })
  test('when parking and waking took longer than its start', () => {
    const a = warm('a', { loadMs: 4_000 })
    a.durations = { ...a.durations, parkMs: 2_000, wakeMs: 2_500 }
    ask(stateOf('b'))
    expect(since()).toEqual(stopped)
  })
  test('when it is unloaded by hand', () => {
    warm('a')
    residency.unload('a')
    expect(since()).toEqual(['stop e1: unloaded'])
  })
})

test('an engine that was not used for its time is parked, and its card is free for others', () => {
  const a = warm('a', { of: { idle_ttl: 1_000 } })
  now += 1_000
  residency.tick()
  expect(since()).toEqual(['park e1'])
  residency.parked('e1', 500, null)
  expect(residency.activity(a).status).toBe('cold')
  ask(stateOf('small', 3))
  expect(since()).toEqual(['start e2 small'])
})

test('what is parked ends first: for the memory that it keeps of the card, and for a model on the processor', () => {
  parkedForAnother()
  ask(stateOf('c', 4))
  expect(since()).toEqual(["stop e1: to make room for 'c'"])
  residency.exited('e1', '')
  expect(since()).toEqual(['start e3 c'])
})

test('a model on the processor gets the main memory of what is parked', () => {
  parkedForAnother()
  const host = residency.upsert(modelOf('host'), { ...wantedOf('host', 60), kind: 'cpu' }, 1)
  ask(host)
  expect(since()).toEqual(["stop e1: to make room for 'host'"])
})

test('of several parked engines the least recently used one ends when their memory is used up', () => {
  budget = 19 * GiB
  const { b } = parkedForAnother()
  ask(stateOf('c'))
  // Together they would use more than they may, so the older one ends first.
  expect(since()).toEqual(['stop e1: the memory for parked engines is needed for another'])
  expect(b.residents[0]).toMatchObject({ state: 'parked', phase: 'clearing' })
  residency.exited('e1', '')
  expect(since()).toEqual(['park e2'])
  residency.parked('e2', 500, null)
  expect(since()).toEqual(['start e3 c'])
})

test('an engine that was woken keeps the main memory until it ends, so another is not parked for lack of it', () => {
  budget = 19 * GiB
  const { a, b } = parkedForAnother()
  const asked = ask(a)
  expect(since()).toEqual(["stop e2: to make room for 'a'"])
  residency.exited('e2', '')
  expect(since()).toEqual(['wake e1'])
  residency.ready('e1')
  residency.release(asked.resident!, 10)
  expect(bookingNow(a.residents[0]!)).toEqual({
    devices: ['gpu0', 'cpu'],
    shares: [20 * GiB, 10 * GiB],
    bytes: 30 * GiB,
  })
  // The memory that it has is that of its next parking.
  ask(b)
  expect(since()).toEqual(['park e1'])
})

test.each<[name: string, away: { forMs: number; usualMs: number | null }, usualMs: number | null, ends: boolean]>([
  ['of two that were never woken the older one ends', { forMs: 30, usualMs: null }, null, true],
  ['one that is woken sooner stays', { forMs: 30, usualMs: 100 }, 80, false],
  ['one that is woken later ends', { forMs: 10, usualMs: 100 }, 80, true],
  ['one that is overdue for long ends', { forMs: 300, usualMs: 100 }, 80, true],
  ['one that is overdue for a little stays', { forMs: 110, usualMs: 100 }, 120, false],
  ['one that is woken soon stays beside one of which nothing is known', { forMs: 30, usualMs: 100 }, null, false],
  ['one that is overdue ends for one of which nothing is known', { forMs: 110, usualMs: 100 }, null, true],
])('where the memory has room for one parked engine, %s', (_name, away, usualMs, ends) => {
  const a = warm('a')
  a.away.usualMs = usualMs
  const old = { engineId: 'old', modelId: 'old', devices: ['gpu0', 'cpu'], bytes: 11 * GiB, shares: [GiB, 10 * GiB] }
  const rest = { busy: false, pinned: false, turnSince: null, turnUntil: null, lastUsedAt: 0, runMs: null, reloadMs: 0 }
  const parked = { ...old, ...rest, parked: true, parkedBytes: 10 * GiB, away }
  expect(parkedInstead(a.residents[0]!, [parked], capacities, 15 * GiB)).toEqual(ends ? ['old'] : undefined)
})

test('an engine that was never parked costs a load when it makes room: the memory may have no room for it', () => {
  const a = warm('a')
  a.durations.wakeMs = 2_000
  const costs = () => residency.plan(stateOf('b')).evict.map(({ reloadMs }) => reloadMs)
  expect(costs()).toEqual([60_000])
  a.residents[0]!.parkedBytes = 10 * GiB
  expect(costs()).toEqual([2_000])
})

test('an engine that is unloaded while it waits to be parked is not parked', () => {
  budget = 19 * GiB
  const { b } = parkedForAnother()
  ask(stateOf('c'))
  residency.unload('b')
  residency.exited('e1', '')
  expect(since()).toEqual(['stop e1: the memory for parked engines is needed for another', 'stop e2: unloaded'])
  expect(b.residents[0]!.state).toBe('stopping')
})

test('an engine that does not wake is killed, and the model is started anew for those who wait', () => {
  const { a } = parkedForAnother()
  const asked = ask(a)
  residency.parked('e2', 1_000, null)
  since()
  residency.parkFailed('e1', 'it did not answer')
  expect(since()).toEqual(['kill e1: it did not answer'])
  residency.exited('e1', 'killed')
  expect(since()).toEqual(['start e3 a'])
  expect(a).toMatchObject({ engineFailures: 0, failures: null, parkingFault: 'it did not answer' })
  now += 60_000
  residency.ready('e3', { hostBytes: 10 * GiB, cardBytes: GiB })
  expect(asked.resident?.engineId).toBe('e3')
})

test('an engine that crashes while it is parked or wakes counts as no failed start', () => {
  const { a } = parkedForAnother()
  residency.exited('e1', 'Engine exited (SIGKILL).')
  expect(a).toMatchObject({ engineFailures: 0, failures: null, residents: [] })
  ask(a)
  expect(since()).toEqual(['park e2'])
})

test('an engine that cannot be parked is killed, and whoever waits for its memory gets it', () => {
  const a = warm('a')
  ask(stateOf('b'))
  since()
  residency.parkFailed('e1', 'it answered 404 at /sleep')
  expect(since()).toEqual(['kill e1: it answered 404 at /sleep'])
  residency.exited('e1', 'killed')
  expect(since()).toEqual(['start e2 b'])
  expect(a.parkingFault).toBe('it answered 404 at /sleep')
})

test('a request that comes while the engine is being parked wakes it when that is done', () => {
  const a = warm('a', { of: { idle_ttl: 1_000 } })
  now += 1_000
  residency.tick()
  const asked = ask(a)
  expect(since()).toEqual(['park e1'])
  residency.parked('e1', 1_000, null)
  expect(since()).toEqual(['wake e1'])
  residency.ready('e1')
  expect(asked.resident?.engineId).toBe('e1')
})

test.each<[ending: string, end: () => void]>([
  ['a changed model', () => residency.upsert(modelOf('a', { args: ['--other'] }), wantedOf('a', 20), 2)],
  ['an unload', () => residency.unload('a')],
  ['a removed model', () => residency.removeModel('a')],
  [
    'a pause',
    () => {
      capacities[0]!.pause = { endsInMs: null, text: 'is paused' }
      residency.pausesChanged({ atOnce: false })
    },
  ],
  ['a fault of the card', () => residency.deviceFailed('gpu0', 'it fell off the bus.', true)],
])('what is parked ends with %s', (_ending, end) => {
  const [parked] = parkedForAnother().a.residents
  end()
  expect(parked!.state).toBe('stopping')
})

test('a model that has room on another card without an eviction is started there, and what is parked ends', () => {
  const { a } = parkedForAnother()
  capacities.push({ id: 'gpu1', kind: 'gpu', capacity: 24 * GiB })
  ask(a)
  expect(since()).toEqual(["stop e1: to make room for 'a'", 'start e3 a'])
})

describe('how long a model is usually away', () => {
  test('ends when it is loaded ahead', () => {
    const a = warm('a', { parks: false })
    const asked = ask(stateOf('b'))
    residency.exited('e1', '')
    residency.ready('e2')
    residency.release(asked.resident!, 10)
    residency.unload('b')
    residency.exited('e2', '')
    since()
    now += 10_000
    residency.upcoming(new Map([['a', 1]]))
    expect([since(), a.away]).toEqual([['start e3 a'], { since: null, usualMs: 10_000 }])
  })

  test('does not begin when a parked engine ends beside one that serves', () => {
    capacities.push({ id: 'gpu1', kind: 'gpu', capacity: 24 * GiB })
    const a = warm('a', { of: { replicas: { min: 2, max: 2 } } })
    residency.ready('e2')
    stateOf('a', 20, { replicas: { min: 0, max: 2 } })
    expect(a.residents.map(({ state }) => state)).toEqual(['ready', 'ready'])
    ask(stateOf('b'))
    expect(since()).toEqual(['park e1'])
    residency.parked('e1', 1_000, null)
    since()
    const c = residency.upsert(modelOf('c'), { ...wantedOf('c', 60), kind: 'cpu' }, 1)
    residency.load(c, { loaded() {}, refuse() {} })
    expect(since()).toEqual(["stop e1: to make room for 'c'"])
    expect([a.residents[1]!.state, a.away.since]).toEqual(['ready', null])
  })
})
