import { describe, expect, test } from 'vitest'
import type { Resident } from '../../../gpu/residency/model-state.ts'
import type { DeviceCapacity, PlacementRequest } from '../../../gpu/residency/place.ts'
import { placeUnpaused } from '../../../gpu/residency/place-unpaused.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'
import { openVirtualFleet } from './_virtual-fleet.ts'

const gpu = (id: string, gigabytes: number, pause?: number | null): DeviceCapacity => ({
  id,
  kind: 'gpu',
  capacity: gigabytes * GiB,
  ...(pause !== undefined && { pause: { endsInMs: pause, text: 'is paused' } }),
})

/** Machines with these GPUs, in GB; `pause` gives some away. */
function machine(...sizes: number[]) {
  const capacities = sizes.map((size, at) => gpu(`gpu${at}`, size))
  const started: string[] = []
  const fleet = openVirtualFleet({
    capacities,
    orderBound: 5,
    loadMs: 1_000,
    started: ({ serves, devices }) => void started.push(`${serves.model.id} ${devices.join()}`),
  })
  const change = (pause: Record<string, number | null>, atOnce: boolean) => {
    for (const [at, device] of capacities.entries()) {
      const { pause: _, ...rest } = device
      const endsInMs = pause[device.id]
      capacities[at] = endsInMs === undefined ? rest : { ...rest, pause: { endsInMs, text: 'is paused' } }
    }
    fleet.residency.pausesChanged({ atOnce })
  }
  return {
    ...fleet,
    started: () => started.splice(0),
    pause: (pause: Record<string, number | null>, atOnce = false) => change(pause, atOnce),
    resume: () => change({}, false),
    model: (id: string, gigabytes: number, of: object = {}, slots = 2) =>
      fleet.residency.upsert(modelOf(id, of), wantedOf(id, gigabytes), slots),
    residents: () => fleet.residency.residents().map(({ serves, state }) => `${serves.model.id} ${state}`),
  }
}

test('under load: what runs ends, what waits keeps its order, nothing is lost, and all is served afterwards', () => {
  const m = machine(24)
  const a = m.model('a', 20)
  const done: string[] = []
  const granted: string[] = []
  const ask = (name: string) =>
    m.ask(a, { serviceMs: 300, granted: () => void granted.push(name), completed: () => void done.push(name) })
  for (let at = 0; at < 10; at++) ask(`r${at}`)
  m.run(1_100)
  expect(granted).toEqual(['r0', 'r1'])
  m.pause({ gpu0: null })
  expect(m.residency.activity(a)).toMatchObject({
    status: 'cold',
    paused: true,
    reason: "'a' waits: gpu0 is paused.",
    etaMs: null,
  })
  ask('late')
  m.run(10_000)
  expect(done).toEqual(['r0', 'r1'])
  expect(m.residents()).toEqual([])
  expect(granted).toEqual(['r0', 'r1'])
  m.resume()
  m.run(20_000)
  expect(granted).toEqual([...Array.from({ length: 10 }, (_, at) => `r${at}`), 'late'])
  expect(done.toSorted()).toEqual(granted.toSorted())
  expect(m.residency.activity(a)).toMatchObject({ status: 'warm', paused: false })
})

describe('engines on a paused device', () => {
  test('leave at once if they are idle or starting', () => {
    const m = machine(24)
    m.ask(m.model('a', 10), { serviceMs: 10 })
    m.run(1_500)
    m.ask(m.model('b', 10), { serviceMs: 10 })
    m.run(2_000)
    expect(m.residents()).toEqual(['a ready', 'b starting'])
    m.pause({ gpu0: null })
    expect(m.residents()).toEqual(['a stopping', 'b stopping'])
  })

  test('end with their requests if that is asked for', () => {
    const m = machine(24)
    m.ask(m.model('a', 10), { serviceMs: 60_000 })
    m.run(1_500)
    m.pause({ gpu0: null }, true)
    expect(m.residents()).toEqual(['a stopping'])
  })

  test('that have not left yet stay when it is used again, without a load', () => {
    const m = machine(24)
    const a = m.model('a', 20)
    const done: number[] = []
    m.ask(a, { serviceMs: 5_000, completed: () => void done.push(m.now()) })
    m.run(1_500)
    m.pause({ gpu0: null })
    m.ask(a, { serviceMs: 100, completed: () => void done.push(m.now()) })
    m.run(2_000)
    expect(done).toEqual([])
    m.resume()
    m.run(10_000)
    expect(done[0]).toBeLessThan(3_000)
    expect(done[1]).toBe(6_000)
    expect(m.started()).toEqual(['a gpu0'])
  })

  test('that are kept loaded leave too, and come back by themselves', () => {
    const m = machine(24)
    m.model('a', 20, { replicas: { min: 1 } })
    m.residency.refresh()
    m.run(2_000)
    expect(m.residents()).toEqual(['a ready'])
    m.pause({ gpu0: null })
    m.run(5_000)
    expect(m.residents()).toEqual([])
    m.resume()
    m.run(10_000)
    expect(m.residents()).toEqual(['a ready'])
  })

  test('are replaced on another device at once, while their requests end', () => {
    const m = machine(24, 24)
    const a = m.model('a', 20)
    const on: Resident[] = []
    m.ask(a, { serviceMs: 60_000, granted: resident => void on.push(resident) })
    m.run(1_500)
    m.pause({ gpu0: null })
    m.ask(a, { serviceMs: 100, granted: resident => void on.push(resident) })
    m.run(4_000)
    expect(on.map(({ devices }) => devices)).toEqual([['gpu0'], ['gpu1']])
    expect(m.residency.activity(a)).toMatchObject({ status: 'warm', paused: false })
    m.run(70_000)
    expect(m.started()).toEqual(['a gpu0', 'a gpu1'])
  })
})

test('a model that only the paused device has room for waits for it, others run', () => {
  const m = machine(24, 12)
  const large = m.model('large', 20)
  const small = m.model('small', 10)
  m.pause({ gpu0: 60_000 })
  const done: string[] = []
  m.ask(large, { serviceMs: 10, completed: () => void done.push('large') })
  m.ask(small, { serviceMs: 10, completed: () => void done.push('small') })
  m.run(5_000)
  expect(done).toEqual(['small'])
  expect(m.residency.activity(large)).toMatchObject({ paused: true, retryMs: 60_000, etaIsMeasured: true })
  expect(m.residency.plan(large)).toMatchObject({
    status: 'wait',
    detail: "'large' waits: gpu0 is paused.",
    devices: [
      { id: 'gpu0', paused: 'gpu0 is paused.' },
      { id: 'gpu1', paused: null },
    ],
  })
  expect(m.residency.plan(large).etaMs).toBeGreaterThan(60_000)
  m.resume()
  m.run(10_000)
  expect(done).toEqual(['small', 'large'])
})

test('before any request its status says that the model waits for a paused device', () => {
  const m = machine(24)
  const a = m.model('a', 20)
  m.pause({ gpu0: null })
  expect(m.residency.activity(a)).toMatchObject({ status: 'cold', paused: true, reason: "'a' waits: gpu0 is paused." })
})

test('a load by hand waits for the end of the pause', () => {
  const m = machine(24)
  const a = m.model('a', 20)
  m.pause({ gpu0: null })
  let loaded = 0
  m.residency.load(a, { loaded: () => void loaded++, refuse: failure => expect.fail(failure.message) })
  m.run(5_000)
  expect(loaded).toBe(0)
  m.resume()
  m.run(10_000)
  expect(loaded).toBe(1)
})

describe('placeUnpaused', () => {
  const request = (gigabytes: number, of: Partial<PlacementRequest> = {}) => ({
    ...wantedOf('m', gigabytes, of),
    mayEvict: true,
  })
  test.each<[rule: string, request: PlacementRequest, capacities: DeviceCapacity[], expected: object]>([
    ['a free device is used', request(10), [gpu('gpu0', 24, null), gpu('gpu1', 12)], { do: 'load', devices: ['gpu1'] }],
    [
      'of several it waits for the first that is used again',
      request(10),
      [gpu('gpu0', 24, null), gpu('gpu1', 24, 5_000), gpu('gpu2', 24, 9_000)],
      { do: 'wait', for: [], pause: { endsInMs: 5_000 }, reason: "'m' waits: gpu1 is paused." },
    ],
    [
      'for two of them, until both are',
      request(40, { devices: 2 }),
      [gpu('gpu0', 24, 9_000), gpu('gpu1', 24, 5_000), gpu('gpu2', 24, null)],
      { do: 'wait', pause: { endsInMs: 9_000 }, reason: "'m' waits: gpu1 is paused, gpu0 is paused." },
    ],
    [
      'one that would never fit is refused as without the pause',
      request(40),
      [gpu('gpu0', 24, null)],
      { do: 'refuse', reason: "'m' needs 40.0 GiB of memory; the most that one GPU here has is 24.0 GiB." },
    ],
    [
      'a model that is bound to a paused device waits',
      request(10, { only: ['gpu0'] }),
      [gpu('gpu0', 24, null), gpu('gpu1', 24)],
      { do: 'wait', pause: { endsInMs: null } },
    ],
    [
      'a paused device with a fault is not waited for',
      request(10),
      [{ ...gpu('gpu0', 24, null), fault: 'It is lost.', capacity: 0 }],
      { do: 'refuse' },
    ],
    ['a remote engine needs none', request(0, { kind: 'none', devices: 0 }), [gpu('gpu0', 24, null)], { do: 'load' }],
  ])('%s', (_, request, capacities, expected) => {
    expect(placeUnpaused(request, [], capacities)).toMatchObject(expected)
  })
})

test('for another program idle engines leave, those that are cheap to load first; busy and kept ones stay', () => {
  const m = machine(24)
  m.model('kept', 4, { replicas: { min: 1 } })
  m.residency.refresh()
  for (const id of ['idle', 'other']) m.ask(m.model(id, 4), { serviceMs: 10 })
  m.ask(m.model('busy', 4), { serviceMs: 600_000 })
  m.run(3_000)
  const leaving = () => m.residents().flatMap(one => (one.endsWith(' stopping') ? [one.split(' ')[0]] : []))
  m.residency.makeRoom(new Map())
  expect(leaving()).toEqual([])
  m.residency.makeRoom(new Map([['gpu0', GiB]]))
  expect(leaving()).toHaveLength(1)
  m.residency.makeRoom(new Map([['gpu0', 24 * GiB]]))
  expect(new Set(leaving())).toEqual(new Set(['idle', 'other']))
})

test('after a pause nobody waits longer beside a model that is never idle than the bound allows', () => {
  const m = machine(24)
  const hot = m.model('hot', 20)
  const cold = m.model('cold', 20)
  for (const { durations } of [hot, cold]) durations.loadMs = 1_000
  m.pause({ gpu0: null })
  const again = (): void => m.ask(hot, { serviceMs: 100, completed: again })
  for (let at = 0; at < 4; at++) again()
  let servedAt = Number.POSITIVE_INFINITY
  m.run(100)
  m.ask(cold, { serviceMs: 10, completed: () => void (servedAt = m.now()) })
  m.run(5_000)
  m.resume()
  m.run(60_000)
  expect(servedAt).toBeLessThan(20_000)
})

test('an engine that is to be unloaded leaves although a pause of its device has begun and ended', () => {
  const m = machine(24)
  const a = m.model('a', 20)
  m.ask(a, { serviceMs: 10_000 })
  m.run(2_000)
  m.residency.unload('a')
  m.pause({ gpu0: null })
  m.resume()
  m.run(20_000)
  expect(m.residents()).toEqual([])
})
