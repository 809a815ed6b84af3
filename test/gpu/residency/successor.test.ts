import { beforeEach, describe, expect, test } from 'vitest'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import { newModelState, type Resident } from '../../../gpu/residency/model-state.ts'
import { newResident } from '../../../gpu/residency/new-resident.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { openResidency, type Residency } from '../../../gpu/residency/residency.ts'
import { isWantedToItsEnd, succession, successorAt } from '../../../gpu/residency/successor.ts'
import { openCallers } from '../_callers.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'

const minute = 60_000
const hour = 60 * minute

/** A ready engine in the pool `lab` whose machine ends it after an hour. */
function ending(of: Partial<Resident> = {}, model: object = {}): Resident {
  const state = newModelState(modelOf('x', { idle_ttl: 10 * minute, ...model }), wantedOf('x', 10, { pool: 'lab' }), 4)
  state.durations.inPools = { lab: { queueMs: 100_000, loadMs: 40_000 } }
  const resident = { ...newResident(state, 'old', { devices: ['a'], pool: 'lab' }, 0), state: 'ready' as const }
  const made = Object.assign(resident, { readyAt: 0, endsAt: hour, ...of })
  state.residents.push(made)
  return made
}

describe('the successor of an engine', () => {
  test.each<[rule: string, of: Partial<Resident>, at: number | null]>([
    ['starts before the end by its load, the wait in the queue and a margin', {}, hour - 1.5 * 140_000 - 30_000],
    ['is not started where no end is known', { endsAt: null }, null],
    ['is not started before the engine is ready', { readyAt: null }, null],
    ['starts after half of a short time', { endsAt: minute }, minute / 2],
    ['of an engine that is ready after its time starts at once', { endsAt: minute, readyAt: 2 * minute }, minute],
  ])('%s', (_, of, at) => {
    expect(successorAt(ending(of))).toBe(at)
  })

  test.each<[rule: string, of: Partial<Resident>, model: object, wanted: boolean]>([
    ['for one that has requests', { leases: 1 }, {}, true],
    ['for one that was used so late that it stays', { lastUsedAt: hour - minute }, {}, true],
    ['not for one that is idle before its end', { lastUsedAt: hour - 11 * minute }, {}, false],
    ['for one that is always kept loaded', {}, { replicas: { min: 1 } }, true],
    ['for one that never leaves', {}, { idle_ttl: 0 }, true],
    ['not for a model that is disabled', { leases: 1 }, { enabled: false }, false],
  ])('is started %s', (_, of, model, wanted) => {
    const resident = ending(of, model)
    expect(isWantedToItsEnd(resident)).toBe(wanted)
    expect(succession(resident, hour - minute)?.isDue).toBe(wanted)
  })

  test('is not started for one that leaves, and asked for again while it is not wanted', () => {
    expect(succession(ending({ leases: 1, draining: 'unload' }), hour - minute)).toBeUndefined()
    expect(succession(ending(), hour - minute)).toEqual({ isDue: false, askAt: hour - 45_000 })
    expect(succession(ending({ leases: 1 }), 0)).toEqual({ isDue: false, askAt: hour - 240_000 })
    expect(succession(ending({ leases: 1 }), hour)).toBeUndefined()
  })
})

describe('in the residency', () => {
  let done: string[]
  let now: number
  let wakeAt: number
  let residency: Residency
  let cards: number
  let count: number
  let callers: ReturnType<typeof openCallers>

  beforeEach(() => {
    done = []
    now = count = 0
    cards = 2
    wakeAt = Number.POSITIVE_INFINITY
    callers = openCallers(() => now)
    residency = openResidency(
      {
        now: () => now,
        start: ({ engineId }) => void done.push(`start ${engineId}`),
        settle: ({ engineId }) => residency.settled(engineId),
        stop: ({ engineId }, reason) => void done.push(`stop ${engineId}: ${reason}`),
        wake: at => void (wakeAt = at),
        newEngineId: () => `e${++count}`,
      },
      () =>
        Array.from(
          { length: cards },
          (_, at): DeviceCapacity => ({ id: `lab/n/${at}`, kind: 'gpu', capacity: 24 * GiB, pool: 'lab', node: 'n' }),
        ),
      callers.queue,
      defaultRules,
    )
    callers.attach(residency)
  })
  const since = (): string[] => done.splice(0)
  function passTo(end: number): void {
    while (wakeAt <= end) {
      now = Math.max(now, wakeAt)
      wakeAt = Number.POSITIVE_INFINITY
      residency.tick()
    }
    now = end
  }
  /** An engine that has taken 10 s to load and ends after an hour. */
  function loaded(model: object = {}) {
    const state = residency.upsert(
      modelOf('x', { idle_ttl: 10 * minute, ...model }),
      wantedOf('x', 20, { pool: 'lab' }),
      1,
    )
    residency.load(state, { loaded() {}, refuse() {} })
    passTo(70_000)
    residency.ready('e1', null, 60_000)
    residency.endsAt('e1', hour)
    expect(since()).toEqual(['start e1'])
    expect(state.durations).toMatchObject({ loadMs: 10_000, inPools: { lab: { queueMs: 60_000, loadMs: 10_000 } } })
    return state
  }
  const dueAt = hour - 1.5 * 70_000 - 30_000
  const taken = 'its time ends, and another engine has taken its place'

  test('a busy engine is succeeded: new requests go to the other one, and it ends after those that it has', () => {
    const state = loaded()
    const running = residency.take('x')!
    passTo(dueAt - 1)
    expect(since()).toEqual([])
    passTo(dueAt)
    expect(since()).toEqual(['start e2'])
    passTo(dueAt + 30_000)
    expect(since()).toEqual([])
    residency.ready('e2', null, 20_000)
    expect(residency.take('x')!.engineId).toBe('e2')
    expect(since()).toEqual([])
    residency.release(running, 1_000)
    expect(since()).toEqual([`stop e1: ${taken}`])
    residency.exited('e1', '')
    expect(state.residents.map(({ engineId }) => engineId)).toEqual(['e2'])
  })

  test('an idle engine is not succeeded', () => {
    loaded()
    passTo(hour)
    expect(since()).toEqual(['stop e1: idle'])
  })

  test('one that is used again after the time is succeeded then', () => {
    loaded()
    const running = residency.take('x')!
    passTo(hour - 11 * minute)
    residency.release(running, 10)
    passTo(dueAt)
    expect(since()).toEqual([])
    residency.take('x')
    passTo(dueAt + minute)
    expect(since()).toEqual(['start e2'])
  })

  test('a kept engine stays until its successor is ready, although it is idle', () => {
    loaded({ replicas: { min: 1, max: 1 } })
    passTo(dueAt + minute)
    expect(since()).toEqual(['start e2'])
    residency.ready('e2')
    expect(since()).toEqual([`stop e1: ${taken}`])
  })

  test('an engine makes no room for its own successor, and serves to its end', () => {
    cards = 1
    const state = loaded()
    residency.take('x')
    passTo(dueAt + minute)
    expect(since()).toEqual([])
    expect(state.reason).toContain("'x'")
    residency.exited('e1', 'Its time has ended.')
    expect(since()).toEqual([])
  })

  test('a start that fails is repeated while there is time, and the requests stay where they are', () => {
    loaded()
    residency.take('x')
    passTo(dueAt)
    expect(since()).toEqual(['start e2'])
    residency.startFailed('e2', 'No.')
    passTo(dueAt + 5_000)
    expect(since()).toEqual(['start e3'])
  })

  test('one that becomes idle meanwhile is not succeeded any more: the start is cancelled', () => {
    loaded()
    const running = residency.take('x')!
    passTo(dueAt)
    expect(since()).toEqual(['start e2'])
    residency.release(running, 10)
    passTo(dueAt + 10 * minute)
    expect(since()).toEqual(['stop e2: the engine whose place it should take is idle', 'stop e1: idle'])
  })

  test('an unload by hand ends both', () => {
    loaded()
    const running = residency.take('x')!
    passTo(dueAt - minute)
    residency.release(running, 10)
    passTo(dueAt)
    expect(since()).toEqual(['start e2'])
    residency.unload('x')
    expect(since()).toEqual(['stop e1: unloaded', 'stop e2: unloaded'])
  })
})
