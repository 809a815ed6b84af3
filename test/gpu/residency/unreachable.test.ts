import { beforeEach, describe, expect, test } from 'vitest'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import { addFailure } from '../../../gpu/residency/backoff.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { openResidency, type Residency } from '../../../gpu/residency/residency.ts'
import { isBackReason, lostReason, replacementAt } from '../../../gpu/residency/unreachable.ts'
import { openCallers } from '../_callers.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'

const minute = 60_000
const rules = defaultRules.backoff
const alarms = (...times: readonly number[]) =>
  times.reduce<ReturnType<typeof addFailure> | null>((before, at) => addFailure(before, '', at, rules), null)

test.each<[rule: string, before: ReturnType<typeof alarms>, now: number, at: number]>([
  ['at once the first time', alarms(), 5_000, 5_000],
  ['a second after one that has answered again', alarms(1_000), 1_500, 2_000],
  ['at once where that time is over', alarms(1_000), 3_000, 3_000],
  ['later each time', alarms(1_000, 10_000, 20_000, 30_000), 31_000, 38_000],
  ['after five minutes at most', alarms(...Array.from({ length: 20 }, () => 0)), 0, 5 * minute],
  ['at once again when none has come for long', alarms(0, 0, 0), 4_000 + 5 * minute, 4_000 + 5 * minute],
])('an engine that cannot be reached is replaced %s', (_, before, now, at) => {
  expect(replacementAt(before, now, rules)).toBe(at)
})

describe('an engine that cannot be reached', () => {
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
  const stateOf = (id: string, model: object = {}) =>
    residency.upsert(modelOf(id, { idle_ttl: 10 * minute, ...model }), wantedOf(id, 20, { pool: 'lab' }), 2)
  /** The model `x` with the ready engine `e1`. */
  function loaded(model: object = {}) {
    const state = stateOf('x', model)
    residency.load(state, { loaded() {}, refuse() {} })
    passTo(1_000)
    residency.ready('e1')
    expect(since()).toEqual(['start e1'])
    return state
  }
  /** A request that waits; the engines that serve it. */
  function waits(state: ReturnType<typeof stateOf>): string[] {
    const served: string[] = []
    const refuse = (failure: Error) => void served.push(failure.message)
    callers.ask(state, Number.POSITIVE_INFINITY, { grant: ({ engineId }) => void served.push(engineId), refuse })
    return served
  }

  test('gets no requests; another one is started at once, and serves what waits', () => {
    const state = loaded()
    residency.take('x')
    residency.unreachable('e1')
    expect(since()).toEqual([])
    const served = waits(state)
    expect(since()).toEqual(['start e2'])
    expect(served).toEqual([])
    residency.ready('e2')
    expect(served).toEqual(['e2'])
  })

  test('is ended when the other one is ready, which is no failure of the model, and holds up nobody', () => {
    const state = loaded()
    const first = residency.take('x')!
    residency.release(first, 100)
    residency.unreachable('e1')
    waits(state)
    residency.ready('e2')
    expect(since()).toEqual(['start e2', `stop e1: ${lostReason}`])
    expect(state.failures!.retryAt).toBeLessThanOrEqual(now)
    // Its launcher does not know for long that it has ended, and its card is booked for the next model.
    const other = stateOf('y')
    waits(other)
    expect(since()).toEqual(['start e3'])
    residency.exited('e1', 'Its node has failed.', true)
    expect(state.residents.map(({ engineId }) => engineId)).toEqual(['e2'])
  })

  test('is not replaced while nobody needs it, and stays', () => {
    loaded()
    residency.unreachable('e1')
    passTo(minute)
    expect(since()).toEqual([])
    residency.reached('e1')
    expect(residency.take('x')!.engineId).toBe('e1')
  })

  test('of a model that is kept loaded is replaced without a request', () => {
    loaded({ replicas: { min: 1, max: 1 } })
    residency.unreachable('e1')
    expect(since()).toEqual(['start e2'])
  })

  test('that answers again serves on: the other one ends, and the next time that waits longer', () => {
    const state = loaded()
    residency.unreachable('e1')
    const served = waits(state)
    residency.reached('e1')
    expect(served).toEqual(['e1'])
    expect(since()).toEqual(['start e2', `stop e2: ${isBackReason}`])
    residency.startFailed('e2', 'stopped')
    residency.unreachable('e1')
    const more = [waits(state), waits(state)]
    expect(since()).toEqual([])
    expect(state.reason).toContain('cannot be reached')
    passTo(now + 999)
    expect(since()).toEqual([])
    passTo(now + 1)
    expect(since()).toEqual(['start e3'])
    residency.ready('e3')
    expect(more).toEqual([['e3'], ['e3']])
  })

  test('is not taken for an idle one while its replacement is being started, however long that takes', () => {
    const state = loaded()
    residency.unreachable('e1')
    const served = waits(state)
    passTo(30 * minute)
    expect(since()).toEqual(['start e2'])
    residency.ready('e2')
    expect(served).toEqual(['e2'])
  })

  test('makes no room, also not for its own replacement: it may work on', () => {
    cards = 1
    const state = loaded()
    residency.unreachable('e1')
    waits(state)
    waits(stateOf('y'))
    passTo(minute)
    expect(since()).toEqual([])
    residency.exited('e1', 'Its node has failed.', true)
    expect(since()).toEqual(['start e2'])
  })

  test('is not ended by one that is ready in another pool: that says nothing of its own', () => {
    const state = loaded()
    residency.unreachable('e1')
    waits(state)
    const [, other] = residency.residents()
    Object.assign(other!, { placement: { ...other!.placement, pool: 'elsewhere' } })
    residency.ready('e2')
    expect(since()).toEqual(['start e2'])
  })
})
