import { beforeEach, describe, expect, test } from 'vitest'
import type { Failure } from '../../../core/failure.ts'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import { type ModelState, noDurations, type Resident } from '../../../gpu/residency/model-state.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { openResidency, type Residency } from '../../../gpu/residency/residency.ts'
import { openCallers } from '../_callers.ts'
import { GiB, longerOf, modelOf, wantedOf } from '../_models.ts'

/** Every decision, in order, in a short form. */
let done: string[]
let now: number
let wakeAt: number
let residency: Residency
let capacities: DeviceCapacity[]
let engineCount: number
let callers: ReturnType<typeof openCallers>

beforeEach(() => {
  done = []
  now = 0
  wakeAt = Number.POSITIVE_INFINITY
  engineCount = 0
  capacities = [{ id: 'gpu0', kind: 'gpu', capacity: 24 * GiB }]
  callers = openCallers(() => now)
  residency = openResidency(
    {
      now: () => now,
      start: resident => void done.push(`start ${resident.engineId} ${resident.serves.model.id}`),
      settle: resident => void done.push(`settle ${resident.engineId}`),
      stop: (resident, reason, kill) => void done.push(`${kill ? 'kill' : 'stop'} ${resident.engineId}: ${reason}`),
      wake: at => {
        wakeAt = at
      },
      newEngineId: () => `e${++engineCount}`,
      ranOut: (resident, bytes, again) =>
        void done.push(`${again ? 'again' : 'less than'} ${resident.engineId} ${(bytes / GiB).toFixed(1)}`),
    },
    () => capacities,
    callers.queue,
    { ...defaultRules, orderBound: 5 },
  )
  callers.attach(residency)
})

/** The decisions since the last call. */
const since = (): string[] => done.splice(0)

/** Advances the clock, and runs the requested timer and the timers of the callers. */
function pass(ms: number): void {
  const end = now + ms
  for (let next = Math.min(wakeAt, callers.nextDeadline()); next <= end; ) {
    now = Math.max(now, next)
    callers.refuseLate()
    if (wakeAt <= now) {
      wakeAt = Number.POSITIVE_INFINITY
      residency.tick()
    }
    next = Math.min(wakeAt, callers.nextDeadline())
  }
  now = end
}

const stateOf = (id: string, gigabytes = 20, of: object = {}, slots = 2): ModelState =>
  residency.upsert(modelOf(id, of), wantedOf(id, gigabytes), slots)

interface Asked {
  resident?: Resident
  failure?: Failure
  waitedMs?: number
  loadedMs?: number
  cancel(): void
}

/** Requests a slot, immediately or with a wait; with `slot` false, requests that the model be loaded. */
function ask(state: ModelState, waitMs = 30_000, slot = true, background = false): Asked {
  const asked: Asked = { cancel: () => {} }
  const free = slot && callers.waiting(state.model.id) === 0
  const resident = free ? residency.take(state.model.id) : undefined
  if (resident) return { ...asked, resident, waitedMs: 0 }
  const refuse = (failure: Failure) => void (asked.failure = failure)
  asked.cancel = slot
    ? callers.ask(
        state,
        waitMs,
        {
          grant: (resident, waitedMs, loadedMs) => void Object.assign(asked, { resident, waitedMs, loadedMs }),
          refuse,
        },
        background,
      )
    : residency.load(state, { loaded: resident => void (asked.resident = resident), refuse })
  return asked
}

/** A model with one ready engine. */
function warm(id: string, gigabytes = 20, of: object = {}, slots = 2): ModelState {
  const state = stateOf(id, gigabytes, of, slots)
  ask(state, 30_000, false)
  residency.ready(state.residents[0]!.engineId)
  since()
  return state
}

test('with unified memory an engine on the GPU starts when that on the processor has ended', () => {
  const gpu = { ...capacities[0]!, sharesWith: ['cpu'] }
  capacities = [gpu, { ...gpu, id: 'cpu', kind: 'cpu', sharesWith: ['gpu0'] }]
  const slow = residency.upsert(modelOf('slow'), { ...wantedOf('slow', 20), kind: 'cpu' }, 2)
  ask(slow, 30_000, false)
  residency.ready('e1')
  expect(since()).toEqual(['start e1 slow'])
  ask(stateOf('fast'))
  expect(since()).toEqual(["stop e1: to make room for 'fast'"])
  residency.exited('e1', '')
  expect(since()).toEqual(['start e2 fast'])
})

describe('a request that must be alone', () => {
  test('holds one engine until that is idle, and not for longer than it says', () => {
    const state = warm('a', 10, { replicas: { min: 2, max: 2 } })
    residency.ready('e2')
    const busy = [residency.take('a')!, residency.take('a')!]
    expect(new Set(busy.map(({ engineId }) => engineId))).toEqual(new Set(['e1', 'e2']))
    const [held, other] = busy
    expect(residency.take('a', { holdMs: 250 })).toBeUndefined()
    // A second one holds no second engine.
    expect(residency.take('a', { holdMs: 250 })).toBeUndefined()
    expect(residency.take('a')).toBe(other)
    expect(residency.take('a')).toBeUndefined()
    now = 250
    expect(residency.take('a')).toBe(held)
    for (const resident of [held!, held!]) residency.release(resident, 5)
    expect(state.residents.map(({ leases }) => leases)).toEqual([0, 2])
  })

  test('gets an idle engine, whose other slots are free when it shares them', () => {
    const state = warm('a')
    const alone = residency.take('a', { holdMs: 0 })!
    const next = ask(state)
    expect(next.resident).toBeUndefined()
    residency.share(alone)
    expect(next.resident).toBe(alone)
    for (const resident of [alone, alone]) residency.release(resident, 5)
    expect(residency.take('a', { holdMs: 0 })).toBe(alone)
  })
})

describe('loading', () => {
  test('the first request loads; later ones wait for the same engine, in their order', () => {
    const state = stateOf('a', 20, {}, 2)
    const asked = [ask(state), ask(state), ask(state)]
    expect(since()).toEqual(['start e1 a'])
    now = 700
    residency.ready('e1')
    expect(asked.map(one => one.resident?.engineId)).toEqual(['e1', 'e1', undefined])
    expect(asked[0]).toMatchObject({ waitedMs: 700, loadedMs: 700 })
    now = 900
    residency.release(asked[0]!.resident!, 200)
    expect(asked[2]).toMatchObject({ waitedMs: 900, loadedMs: 700 })
  })

  test('a ready engine with a free slot is used at once, but not before requests that wait', () => {
    const state = warm('a', 20, {}, 1)
    const first = ask(state)
    expect(first.waitedMs).toBe(0)
    const second = ask(state)
    residency.release(first.resident!, 5)
    expect(second.resident?.engineId).toBe('e1')
    expect(residency.take('a')).toBeUndefined()
    residency.release(second.resident!, 5)
    expect(residency.take('a')?.engineId).toBe('e1')
    expect(residency.take('unknown')).toBeUndefined()
  })

  test('a request to load the model uses no slot', () => {
    const state = stateOf('a')
    const loaded = ask(state, 1e9, false)
    residency.ready('e1')
    expect(loaded.resident?.leases).toBe(0)
    expect(ask(state, 1e9, false).resident?.engineId).toBe('e1')
  })

  test('a caller that gives up leaves the queue; the load continues', () => {
    const state = stateOf('a', 20, {}, 1)
    const [first, second] = [ask(state), ask(state)]
    first.cancel()
    residency.ready('e1')
    expect(first).not.toHaveProperty('resident')
    expect(second.resident?.engineId).toBe('e1')
    first.cancel()
  })

  test('two models that fit are loaded beside each other', () => {
    ask(stateOf('a', 10))
    ask(stateOf('b', 10))
    expect(since()).toEqual(['start e1 a', 'start e2 b'])
  })

  test('a model that cannot fit anywhere is refused with the reason', () => {
    const { failure } = ask(stateOf('big', 80))
    expect(failure).toMatchObject({ code: 'no_capacity', retryable: false })
    expect(failure?.message).toMatch(/'big' needs 80\.0 GiB of memory; .* has is 24\.0 GiB/)
    ask(stateOf('a', 10))
    expect(residency.activity(residency.find('big')!)).toMatchObject({
      status: 'unavailable',
      reason: expect.stringContaining("'big' needs 80.0 GiB of memory") as string,
    })
  })
})

test.each([
  [80, 'unavailable'],
  [24, 'cold'],
])('a model of %d GiB that nobody requested is %s on a card of 24 GiB with another model', (gigabytes, status) => {
  warm('other', 20, { replicas: { min: 1 } })
  expect(residency.activity(stateOf('a', gigabytes))).toMatchObject({
    status,
    reason: status === 'cold' ? null : expect.stringMatching(/'a' needs 80\.0 GiB of memory; .* has is 24\.0 GiB/),
  })
})

describe('waiting is bounded', () => {
  test('while loading: model_warming_up, with the time of the last load', () => {
    const state = warm('a')
    residency.unload('a')
    residency.exited('e1', '')
    state.durations.loadMs = 60_000
    const asked = ask(state, 5_000)
    residency.settled('e2')
    pass(4_999)
    expect(asked.failure).toBeUndefined()
    pass(1)
    expect(asked.failure).toMatchObject({ code: 'model_warming_up', retryAfterMs: 55_000 })
  })

  test('while busy: no_capacity, with the time of a request', () => {
    const state = warm('a', 20, {}, 1)
    state.durations.runMs = 8_000
    ask(state)
    const asked = ask(state, 1_000)
    pass(1_000)
    expect(asked.failure).toMatchObject({ code: 'no_capacity', retryAfterMs: 8_000 })
    expect(asked.failure?.message).toMatch(/All slots of 'a' are busy/)
  })

  test('each caller waits for its own time limit, whatever those of the others', () => {
    const state = stateOf('a')
    const asked = [3_000, 1_000, 2_000].map(waitMs => ask(state, waitMs))
    const over: number[] = []
    for (let at = 1; at <= 3; at++) {
      pass(1_000)
      over.push(asked.filter(one => one.failure).length)
    }
    expect(over).toEqual([1, 2, 3])
  })

  test('a request without a wait still starts the load', () => {
    const asked = ask(stateOf('a', 8), 0)
    // Nothing is known of its load: a client comes again in 30 s, people see the estimate by its size.
    expect(asked.failure).toMatchObject({
      code: 'model_warming_up',
      retryAfterMs: 30_000,
      facts: { eta_seconds: 30 },
      message: "Model 'a' is still loading; it should take about 11 s.",
    })
    expect(since()).toEqual(['start e1 a'])
  })
})

describe('eviction', () => {
  test('an idle model is evicted; the new one starts when the old one has stopped and its memory is free', () => {
    warm('a')
    const asked = ask(stateOf('b'))
    expect(since()).toEqual(["stop e1: to make room for 'b'"])
    residency.exited('e1', '')
    expect(since()).toEqual(['settle e2'])
    residency.settled('e2')
    expect(since()).toEqual(['start e2 b'])
    residency.ready('e2')
    expect(asked.resident?.engineId).toBe('e2')
  })

  test('the least recently used one is evicted', () => {
    const a = warm('a', 10)
    warm('b', 10)
    now = 100
    residency.release(ask(a).resident!, 1)
    ask(stateOf('c', 10))
    expect(since()).toEqual(["stop e2: to make room for 'c'"])
  })

  test('a busy model is waited for and never stopped before its requests end', () => {
    const a = warm('a')
    const running = ask(a)
    const asked = ask(stateOf('b'))
    pass(9_999)
    expect(since()).toEqual([])
    residency.release(running.resident!, 5)
    expect(since()).toEqual(["stop e1: to make room for 'b'"])
    expect(asked.failure).toBeUndefined()
  })

  test('a model that is always busy must let the other have its turn', () => {
    const a = warm('a', 20, {}, 2)
    let running = ask(a)
    const b = stateOf('b')
    // Five loads behind a server that would have evicted `a` at once, and loaded `b` in 1.8 s.
    for (const { durations } of [a, b]) durations.loadMs = 1_800
    const other = ask(b, 60_000)
    for (let at = 0; at < 10; at++) {
      pass(1_000)
      const next = ask(a)
      residency.release(running.resident!, 1_000)
      running = next
    }
    expect(since()).toEqual([])
    pass(1_000)
    const late = ask(a, 60_000)
    expect(late.resident).toBeUndefined()
    residency.release(running.resident!, 1_000)
    expect(since()).toEqual(["stop e1: to make room for 'b'"])
    residency.exited('e1', '')
    residency.settled('e2')
    residency.ready('e2')
    expect(other.resident?.engineId).toBe('e2')
    // After that the first model gets a turn again.
    residency.release(other.resident!, 10)
    expect(since().at(-1)).toBe("stop e2: to make room for 'a'")
  })

  test('a caller that gives up also gives up the turn', () => {
    const a = warm('a', 20, {}, 2)
    ask(a)
    const b = stateOf('b')
    for (const { durations } of [a, b]) durations.loadMs = 1_000
    const other = ask(b, 60_000)
    pass(6_000)
    expect(residency.take('a')).toBeUndefined()
    other.cancel()
    expect(residency.take('a')).toBeDefined()
  })

  test('a model that is loading is not stopped for another', () => {
    ask(stateOf('a'))
    const other = ask(stateOf('b'), 60_000)
    expect(since()).toEqual(['start e1 a'])
    pass(30_000)
    expect(since()).toEqual([])
    expect(residency.activity(residency.find('b')!).reason).toMatch(/'b' waits for the memory of 'a'/)
    expect(other.failure).toBeUndefined()
  })

  test('a model that is kept loaded is not evicted', () => {
    const state = stateOf('a', 20, { replicas: { min: 1, max: 1 } })
    residency.refresh()
    residency.ready('e1')
    pass(600_000)
    expect(since()).toEqual(['start e1 a'])
    expect(ask(stateOf('b')).failure?.message).toMatch(
      /needs 20\.0 GiB of memory; beside 'a', which is kept loaded .* at most 4\.0 GiB/,
    )
    expect(state.residents).toHaveLength(1)
  })
})

describe('unload', () => {
  test('a caller that waits for the load gets an error, and does not cause another load', () => {
    const loading = ask(stateOf('a'), Number.POSITIVE_INFINITY, false)
    residency.unload('a')
    expect(since()).toEqual(['start e1 a', 'stop e1: unloaded'])
    residency.startFailed('e1', 'Engine was stopped while it was loading.')
    expect(loading.failure).toMatchObject({ code: 'conflict' })
    expect(since()).toEqual([])
  })

  test('a caller that waits for a slot gets a new engine', () => {
    const state = stateOf('a')
    const asked = ask(state)
    residency.unload('a')
    residency.startFailed('e1', 'Engine was stopped while it was loading.')
    residency.settled('e2')
    expect(since()).toEqual(['start e1 a', 'stop e1: unloaded', 'settle e2', 'start e2 a'])
    residency.ready('e2')
    expect(asked.resident?.engineId).toBe('e2')
  })

  test('a load that waited for a busy model no longer affects the order of its requests', () => {
    const busy = warm('b')
    ask(busy)
    const loading = ask(stateOf('a'), Number.POSITIVE_INFINITY, false)
    expect(residency.find('a')!.reason).not.toBeNull()
    residency.unload('a')
    expect(loading.failure?.message).toMatch(/'a' was unloaded/)
    pass(60_000)
    expect(ask(busy).resident?.engineId).toBe('e1')
    expect(residency.find('a')!.reason).toBeNull()
  })
})

describe('idle', () => {
  test('after idle_ttl without a request the model is unloaded, measured from the last one', () => {
    const state = warm('a', 20, { idle_ttl: 1_000 })
    pass(900)
    residency.release(ask(state).resident!, 1)
    pass(999)
    expect(since()).toEqual([])
    pass(1)
    expect(since()).toEqual(['stop e1: idle'])
  })

  test('a running request keeps it, however long', () => {
    const state = warm('a', 20, { idle_ttl: 1_000 })
    const running = ask(state)
    pass(100_000)
    residency.release(running.resident!, 100_000)
    expect(since()).toEqual([])
    pass(1_000)
    expect(since()).toEqual(['stop e1: idle'])
  })

  test('idle_ttl 0 keeps it', () => {
    warm('a', 20, { idle_ttl: 0 })
    pass(1e9)
    expect(since()).toEqual([])
  })
})

describe('failure', () => {
  const start = (state: ModelState) => {
    const asked = ask(state)
    const id = state.residents[0]?.engineId
    return { asked, id }
  }

  test('callers that wait get the reason of the failed start; the next attempt comes a second later', () => {
    const state = stateOf('a')
    const { asked, id } = start(state)
    residency.startFailed(id!, 'Engine exited (3): CUDA out of memory')
    expect(asked.failure).toMatchObject({
      code: 'no_capacity',
      message: "Model 'a' cannot be started: Engine exited (3): CUDA out of memory",
      retryAfterMs: 1_000,
      retryable: true,
      facts: { failed_starts: 1 },
    })
    since()
    const next = ask(state)
    expect(since()).toEqual([])
    pass(999)
    expect(since()).toEqual([])
    pass(1)
    expect(since()).toEqual(['settle e2'])
    expect(next.failure).toBeUndefined()
  })

  test.each([true, false])('who came during a long start that fails waits for the next one; slot: %s', slot => {
    const state = stateOf('a')
    const first = ask(state, 90_000, slot)
    pass(59_000)
    const bystander = ask(state, 90_000, slot)
    pass(1_000)
    residency.startFailed('e1', 'Engine was not ready after 60 s.')
    expect(first.failure).toMatchObject({ code: 'no_capacity' })
    expect(bystander.failure).toBeUndefined()
    since()
    pass(1_000)
    expect(since()).toEqual(['settle e2'])
    residency.settled('e2')
    expect(since()).toEqual(['start e2 a'])
    pass(58_000)
    residency.startFailed('e2', 'Engine was not ready after 58 s.')
    expect(bystander.failure).toMatchObject({
      message: "Model 'a' cannot be started: Engine was not ready after 58 s.",
    })
  })

  test('a caller whose wait would end within the pause gets the error at once', () => {
    const state = stateOf('a')
    residency.startFailed(start(state).id!, 'no')
    expect(ask(state, 500).failure).toMatchObject({ code: 'no_capacity', retryAfterMs: 1_000 })
  })

  test('five failed starts open the circuit; after the pause one attempt decides', () => {
    const state = stateOf('a')
    for (let attempt = 1; attempt <= 5; attempt++) {
      const { id } = start(state)
      residency.startFailed(id!, `no ${attempt}`)
      if (attempt < 5) pass(1_000 * 2 ** (attempt - 1))
    }
    since()
    const refused = ask(state, 60_000)
    expect(refused.failure).toMatchObject({
      code: 'no_capacity',
      retryAfterMs: 16_000,
      retryable: true,
      facts: { failed_starts: 5 },
    })
    expect(refused.failure?.message).toBe("Model 'a' cannot be started: no 5")
    expect(residency.activity(state)).toMatchObject({ status: 'unavailable', engineStarts: 5, engineFailures: 5 })
    pass(16_000)
    expect(since()).toEqual([])
    const half = ask(state)
    expect(since()).toEqual(['start e6 a'])
    residency.ready('e6')
    residency.release(half.resident!, 10)
    expect(state.failures).toBeNull()
  })

  test('readiness is not a success: an engine that exits on every request opens the circuit too', () => {
    const state = stateOf('a')
    for (let attempt = 1; attempt <= 5; attempt++) {
      const asked = ask(state)
      const id = state.residents[0]!.engineId
      residency.ready(id)
      residency.exited(id, 'Engine exited (1)')
      residency.release(asked.resident!, null)
      if (attempt < 5) pass(1_000 * 2 ** (attempt - 1))
    }
    expect(ask(state).failure?.code).toBe('no_capacity')
  })

  test('an engine that has served requests and exits is restarted after a second', () => {
    const state = warm('a')
    residency.release(ask(state).resident!, 10)
    const running = ask(state)
    residency.exited('e1', 'Engine exited (SIGSEGV)')
    residency.release(running.resident!, null)
    const next = ask(state)
    pass(1_000)
    expect(since()).toEqual(['settle e2'])
    residency.settled('e2')
    residency.ready('e2')
    expect(next.resident?.engineId).toBe('e2')
    expect(state.failures?.count).toBe(1)
  })

  test('an engine that has served requests and is lost with its machine is replaced at once, one that has not later', () => {
    const state = warm('a')
    residency.release(ask(state).resident!, 10)
    residency.exited('e1', 'Engine exited (ended).', true)
    ask(state)
    expect(since()).toEqual(['settle e2'])
    residency.settled('e2')
    residency.ready('e2')
    expect(since()).toEqual(['start e2 a'])
    residency.exited('e2', 'Engine exited (ended).', true)
    ask(state)
    pass(1_999)
    expect(since()).toEqual([])
    pass(1)
    expect(since()).toEqual(['settle e3'])
  })

  test('a slot released by an exited engine is not reassigned', () => {
    const state = warm('a', 20, {}, 1)
    const running = ask(state)
    const waiting = ask(state)
    residency.exited('e1', 'Engine exited (1)')
    residency.release(running.resident!, null)
    expect(waiting.resident).toBeUndefined()
    expect(waiting.failure).toBeUndefined()
  })

  test('an engine without progress is killed, and its memory is free once it has exited', () => {
    const state = warm('a', 20, {}, 1)
    const running = ask(state)
    const waiting = ask(state)
    residency.stuck('e1', 'no progress')
    expect(since()).toEqual(['kill e1: no progress'])
    residency.release(running.resident!, null)
    residency.exited('e1', 'no progress')
    pass(1_000)
    expect(since()).toEqual(['settle e2'])
    residency.settled('e2')
    residency.ready('e2')
    expect(waiting.resident?.engineId).toBe('e2')
  })

  test('a model that is kept loaded is restarted repeatedly, with growing delays', () => {
    stateOf('a', 20, { replicas: { min: 1, max: 1 } })
    residency.refresh()
    for (let at = 1; at <= 3; at++) {
      residency.startFailed(`e${at}`, 'no')
      pass(300_000)
      residency.settled(`e${at + 1}`)
    }
    expect(since().filter(one => one.startsWith('start'))).toEqual([
      'start e1 a',
      'start e2 a',
      'start e3 a',
      'start e4 a',
    ])
  })

  test('the memory of an engine that has ended by itself is waited for, on its device only', () => {
    capacities.push({ id: 'gpu1', kind: 'gpu', capacity: 24 * GiB })
    warm('a')
    residency.exited('e1', 'Engine exited (SIGSEGV).')
    ask(stateOf('b'))
    expect(since()).toEqual(['settle e2'])
    residency.settled('e2')
    expect(since()).toEqual(['start e2 b'])
    ask(stateOf('c'))
    expect(since()).toEqual(['start e3 c'])
  })

  test('five seconds after the end of an engine its memory is taken as free', () => {
    warm('a')
    residency.exited('e1', 'Engine exited (SIGSEGV).')
    pass(5_000)
    ask(stateOf('b'))
    expect(since()).toEqual(['start e2 b'])
  })
})

describe('a model whose engine has ended keeps its place in the order', () => {
  test.each<[end: string, next: string, act: (running: Resident) => void]>([
    [
      'it crashes',
      'b a',
      running => {
        residency.exited('e1', 'Engine exited (1)')
        residency.release(running, null)
      },
    ],
    [
      'it is killed without progress',
      'b a',
      running => {
        residency.stuck('e1', 'no progress')
        residency.release(running, null)
        residency.exited('e1', 'no progress')
      },
    ],
    [
      'it is unloaded by hand',
      'a b',
      running => {
        residency.unload('a')
        residency.release(running, 10)
        residency.exited('e1', 'unloaded')
      },
    ],
    [
      'its configuration changes',
      'a b',
      running => {
        stateOf('a', 20, { args: ['--new'] })
        residency.refresh()
        residency.release(running, 10)
        residency.exited('e1', 'the configuration has changed')
      },
    ],
    [
      'it is placed anew without a change',
      'a b',
      running => {
        const { model, placement, slots } = residency.find('a')!
        const state = residency.upsert(model, placement, slots, true)
        expect(state.residents).toEqual([])
        residency.refresh()
        residency.release(running, 10)
        residency.exited('e1', 'its devices have changed')
      },
    ],
  ])('%s: next are %s', (_end, next, act) => {
    const [running, waiting] = [ask(warm('a', 20, {}, 1)), ask(residency.find('a')!, 300_000)]
    pass(1_000)
    const [b] = [ask(stateOf('b', 20, {}, 1), 300_000), ask(stateOf('c'), 300_000)]
    pass(1_000)
    act(running.resident!)
    const [first, second] = next.split(' ')
    const [engine] = residency.residents()
    expect(engine!.serves.model.id).toBe(first)
    residency.settled(engine!.engineId)
    residency.ready(engine!.engineId)
    pass(2_000)
    residency.release((first === 'a' ? waiting : b).resident!, 10)
    expect(since().findLast(done => done.startsWith('stop'))).toBe(
      `stop ${engine!.engineId}: to make room for '${second}'`,
    )
  })
})

describe('replicas', () => {
  test('a second engine is started when the first is full and there is memory, and stopped when it is idle', () => {
    const state = warm('a', 10, { replicas: { min: 0, max: 2 }, idle_ttl: 1_000 }, 1)
    const first = ask(state)
    const second = ask(state)
    expect(since()).toEqual(['start e2 a'])
    residency.ready('e2')
    expect(second.resident?.engineId).toBe('e2')
    const third = ask(state)
    expect(since()).toEqual([])
    residency.release(first.resident!, 1)
    expect(third.resident?.engineId).toBe('e1')
    pass(500)
    residency.release(second.resident!, 1)
    pass(1_000)
    expect(since()).toEqual(['stop e2: idle'])
  })

  test('of two engines the less busy one takes the next request', () => {
    const state = warm('a', 10, { replicas: { min: 2, max: 2 } }, 2)
    residency.refresh()
    residency.ready('e2')
    const first = ask(state).resident!.engineId
    const second = ask(state).resident!.engineId
    expect(new Set([first, second])).toEqual(new Set(['e1', 'e2']))
  })

  test('a second engine evicts nothing', () => {
    const state = warm('a', 10, { replicas: { min: 0, max: 2 } }, 1)
    warm('b', 12)
    ask(state)
    ask(state)
    expect(since()).toEqual([])
  })
})

describe('a replica that its model can do without', () => {
  const replicated = (of: object = {}) => {
    const state = warm('a', 10, { replicas: { min: 0, max: 2 }, ...of }, 2)
    state.durations = { ...noDurations, loadMs: 1_000, runMs: 10_000 }
    const [first, second] = [ask(state), ask(state), ask(state)]
    residency.ready('e2')
    expect(state.residents.map(({ leases }) => leases)).toEqual([2, 1])
    since()
    return { state, first, second }
  }

  test('makes room at once for a model that waits, and the other engine stays', () => {
    const { state, first, second } = replicated()
    residency.release(first.resident!, 10_000)
    const waiting = ask(stateOf('b', 14), 300_000)
    // Two requests run, and one engine has two slots: 'a' gets none on the engine that leaves.
    expect(state.residents.map(({ draining }) => draining)).toEqual(['turn', null])
    expect(ask(state).resident?.engineId).toBe('e2')
    residency.release(second.resident!, 10_000)
    expect(since()).toEqual(["stop e1: to make room for 'b'"])
    residency.exited('e1', '')
    residency.settled('e3')
    residency.ready('e3')
    expect(waiting.resident?.engineId).toBe('e3')
  })

  test('stays while its model needs it', () => {
    const { state } = replicated()
    ask(stateOf('b', 14), 300_000)
    pass(2_000)
    expect(state.residents.map(({ draining }) => draining)).toEqual([null, null])
  })

  test('is unloaded once its model could do without it for as long as idle engines stay', () => {
    const { state, first, second } = replicated({ idle_ttl: 60_000 })
    residency.release(second.resident!, 10_000)
    // Never more than two at a time, and each engine has one now and then.
    let running = first
    for (let at = 0; at < 8; at++) {
      pass(10_000)
      residency.release(running.resident!, 10_000)
      running = ask(state)
    }
    expect(since()).toEqual(['stop e1: unloaded'])
  })
})

describe('unloading and closing', () => {
  test('unload waits for running requests and accepts no new ones', () => {
    const state = warm('a')
    const running = ask(state)
    residency.unload('a')
    expect(since()).toEqual([])
    expect(residency.take('a')).toBeUndefined()
    residency.release(running.resident!, 1)
    expect(since()).toEqual(['stop e1: unloaded'])
  })

  test('an idle engine stops at once, a loading one too, and a kept one is not reloaded until the next request', () => {
    const state = stateOf('a', 10, { replicas: { min: 1, max: 1 } })
    residency.refresh()
    residency.unload('a')
    residency.exited('e1', '')
    pass(600_000)
    expect(since()).toEqual(['start e1 a', 'stop e1: unloaded'])
    ask(state)
    expect(since()).toEqual(['start e2 a'])
    residency.unload('nobody')
  })

  test('closing refuses waiting and new requests, and starts nothing', () => {
    const state = stateOf('a', 20, { replicas: { min: 1, max: 1 } })
    const waiting = ask(state)
    residency.close()
    expect(waiting.failure?.code).toBe('shutting_down')
    expect(ask(state).failure?.code).toBe('shutting_down')
    residency.ready('e1')
    residency.stopAll('end', () => false)
    residency.exited('e1', 'end')
    expect(since()).toEqual(['start e1 a', 'stop e1: end'])
    expect(residency.residents()).toEqual([])
  })

  test('a load that has not begun is dropped like one that has', () => {
    warm('a')
    ask(stateOf('b')).cancel()
    residency.unload('b')
    expect(since()).toEqual(["stop e1: to make room for 'b'", 'stop e2: unloaded'])
    residency.exited('e2', '')
    residency.exited('e1', '')
    residency.settled('e2')
    expect(since()).toEqual([])
  })
})

describe('an engine that runs out of memory while it loads', () => {
  const full = 'Engine exited (1): out of memory.'
  /** 15 GiB on the GPU, with so many of cache. */
  const layoutOf = (gigabytes: number) => ({ need: { gpu: 15 * GiB, cpu: GiB, cache: gigabytes * GiB } }) as never

  test('is started again at once, once, with the memory of an idle engine', () => {
    warm('idle', 8)
    const state = stateOf('a', 10)
    const asked = ask(state)
    expect(since()).toEqual(['start e2 a'])
    residency.startFailed('e2', full)
    expect(since()).toEqual(['again e2 16.0', "stop e1: to make room for 'a'"])
    residency.exited('e1', 'stopped')
    residency.settled('e3')
    expect(since()).toEqual(['settle e3', 'start e3 a'])
    expect(state.residents[0]!.bytes).toBeGreaterThan(16 * GiB)
    residency.startFailed('e3', full)
    expect(since()).toEqual([])
    expect(asked.failure?.message).toBe(
      "Model 'a' cannot be started: Engine exited (1): out of memory. 24.0 GiB were free for it: reduce its context_length or concurrency, or use a smaller model.",
    )
  })

  test('gets a layout that uses less where infer chooses it and no engine can be evicted', () => {
    const state = stateOf('a', 16)
    state.placement = { ...state.placement, plan: { layout: layoutOf(4) } }
    ask(state)
    residency.startFailed('e1', full)
    expect(since()).toEqual(['start e1 a', 'less than e1 18.0'])
    // By half of its cache, and by a ninth of a layout that is mostly weights.
    expect(state.planned!.bytesEach / GiB).toBeCloseTo(14)
    state.placement = { ...state.placement, plan: { layout: layoutOf(0.5) } }
    pass(1_000)
    residency.settled('e2')
    residency.startFailed('e2', full)
    expect(state.planned!.bytesEach / GiB).toBeCloseTo(16 - 15 / 9)
  })

  test('tries a smaller layout once for those who wait', () => {
    const state = stateOf('a', 16)
    state.placement = { ...state.placement, plan: { layout: layoutOf(4) } }
    const asked = ask(state)
    residency.startFailed('e1', full)
    expect([since(), asked.failure]).toEqual([['start e1 a', 'less than e1 18.0'], undefined])
    pass(1_000)
    residency.settled('e2')
    expect(since()).toEqual(['settle e2', 'start e2 a'])
    residency.startFailed('e2', full)
    expect(asked.failure?.message).toContain('out of memory. 24.0 GiB were free for it')
    expect(since()).toEqual(['less than e2 18.0'])
    // Those who come later get the layout that is smaller still.
    const later = ask(state)
    pass(2_000)
    residency.settled('e3')
    residency.ready('e3')
    expect(later.resident?.engineId).toBe('e3')
  })

  test('tries a smaller layout, and no further engine is evicted, where a tensor does not fit into one buffer', () => {
    const large = 'Engine exited (SIGABRT): a tensor is larger than one buffer of the GPU can be.'
    warm('idle', 8)
    const state = stateOf('a', 10)
    state.placement = { ...state.placement, plan: { layout: layoutOf(4) } }
    const asked = ask(state)
    residency.startFailed('e2', large)
    expect([since(), asked.failure]).toEqual([['start e2 a', 'less than e2 11.3'], undefined])
    expect(state.planned!.bytesEach / GiB).toBeCloseTo(8)
    pass(1_000)
    residency.settled('e3')
    residency.startFailed('e3', large)
    expect(asked.failure?.message).toMatch(
      /: a tensor is larger than one buffer of the GPU can be\. Mostly it is the cache of one layer .* reduce its context_length/,
    )
  })

  test('plans for less after an engine that answered has run out of memory', () => {
    const state = stateOf('a', 16)
    state.placement = { ...state.placement, plan: { layout: layoutOf(4) } }
    const asked = ask(state)
    residency.ready('e1')
    residency.release(asked.resident!, 5)
    residency.exited('e1', 'Engine exited (SIGABRT): out of memory.')
    expect(since()).toEqual(['start e1 a', 'less than e1 18.0'])
    expect(state.planned).not.toBeNull()
  })

  test.each([
    ['busy', {}],
    ['kept loaded', { replicas: { min: 1, max: 1 } }],
  ])('evicts no engine that is %s', (name, of) => {
    const other = warm('other', 8, of)
    if (name === 'busy') ask(other)
    const asked = ask(stateOf('a', 10))
    residency.startFailed('e2', full)
    expect(since()).toEqual(['start e2 a'])
    expect(asked.failure?.message).toContain('out of memory. 16.0 GiB were free for it')
  })
})

test('a load whose memory another program has taken waits for the other GPU, and nobody is refused', () => {
  capacities.push({ ...capacities[0]!, id: 'gpu1' })
  const other = warm('other', 16)
  const busy = ask(other)
  const state = stateOf('a', 16)
  const asked = ask(state)
  expect(state.residents[0]!.devices).toEqual(['gpu1'])
  capacities[1] = { ...capacities[1]!, capacity: 12 * GiB }
  residency.startFailed('e2', 'Engine exited (1): out of memory.')
  expect(asked.failure).toBeUndefined()
  residency.release(busy.resident!, 5)
  residency.exited('e1', 'stopped')
  expect(state.residents[0]).toMatchObject({ devices: ['gpu0'], bytes: 16 * GiB })
})

describe('a model that would have a longer context on two cards', () => {
  const long = (id = 'a') => residency.upsert(modelOf(id), longerOf(id, 20, 26), 2)
  const engineOf = ({ residents }: ModelState) => residents[0] as Resident
  beforeEach(() => void capacities.push({ ...capacities[0]!, id: 'gpu1' }))

  test('gets both where they are free, and that layout', () => {
    const state = long()
    ask(state)
    expect(engineOf(state)).toMatchObject({
      devices: ['gpu0', 'gpu1'],
      slots: 1,
      bytes: 26 * GiB,
      placement: { bytes: 26 * GiB, devices: 2, plan: { layout: { context: 32_768 } } },
    })
    expect(engineOf(state).layers).toEqual([16, 16])
    expect(state.placement).toMatchObject({ bytes: 20 * GiB, devices: 1 })
  })

  test('evicts nobody for it', () => {
    warm('idle', 23.5)
    const state = long()
    ask(state)
    expect(engineOf(state)).toMatchObject({ devices: ['gpu1'], bytes: 20 * GiB, slots: 2 })
    expect(since()).toEqual(['start e2 a'])
  })

  test('leaves the other card to a model that waits', () => {
    const kept = { replicas: { min: 1 } }
    const states = ['a', 'b'].map(id => residency.upsert(modelOf(id, kept), longerOf(id, 23.5, 26), 2))
    residency.refresh()
    expect(states.map(state => engineOf(state).devices)).toEqual([['gpu0'], ['gpu1']])
  })

  test('gets one card at once after an engine on two that could not be started, and for later loads', () => {
    const state = long()
    const asked = ask(state)
    residency.startFailed('e1', 'Engine exited (1): out of memory.')
    expect(engineOf(state)).toMatchObject({ engineId: 'e2', devices: ['gpu0'], bytes: 20 * GiB })
    residency.ready('e2')
    expect(asked.resident?.engineId).toBe('e2')
    residency.release(asked.resident!, 5)
    residency.unload('a')
    residency.exited('e2', 'unloaded')
    ask(long())
    expect(engineOf(state)).toMatchObject({ engineId: 'e3', devices: ['gpu0'] })
  })

  test('and after one that has ended before its first answer', () => {
    const state = long()
    ask(state, 30_000, false)
    residency.ready('e1')
    residency.exited('e1', 'Engine exited (139)')
    ask(state)
    pass(1_000)
    expect(engineOf(state)).toMatchObject({ engineId: 'e2', devices: ['gpu0'] })
  })
})

describe('an engine that fails with an error of its GPU', () => {
  const broken = 'Engine exited (1): the GPU reported an error'

  beforeEach(() => {
    capacities.push({ ...capacities[0]!, id: 'gpu1' })
    warm('idle', 16)
    expect(residency.find('idle')!.residents[0]!.devices).toEqual(['gpu0'])
  })

  test('is started again at once on another one, where an idle engine is evicted, and later ones too', () => {
    const state = stateOf('a', 16)
    const asked = ask(state)
    expect(state.residents[0]!.devices).toEqual(['gpu1'])
    residency.startFailed('e2', broken)
    residency.exited('e1', 'stopped')
    residency.settled('e3')
    expect(state.residents[0]!.devices).toEqual(['gpu0'])
    residency.ready('e3')
    expect(asked.resident?.engineId).toBe('e3')
    residency.release(asked.resident!, 5)
    residency.unload('a')
    residency.exited('e3', 'unloaded')
    ask(state)
    expect(state.residents[0]!.devices).toEqual(['gpu0'])
  })

  test('uses it again while the other one is busy, after the usual delay', () => {
    ask(residency.find('idle')!)
    const state = stateOf('a', 16)
    ask(state)
    residency.startFailed('e2', broken)
    expect(state.failures).toMatchObject({ count: 1 })
    ask(state)
    pass(1_000)
    expect(state.residents[0]!.devices).toEqual(['gpu1'])
  })
})

describe('a GPU that gets a fault', () => {
  const lost = 'nvidia-smi does not list it any more.'
  /** gpu0 has the engine e1 and a fault, gpu1 is empty. */
  function faulty(busy: boolean, isFatal: boolean) {
    capacities.push({ ...capacities[0]!, id: 'gpu1' })
    const state = warm('a', 16)
    const asked = busy ? ask(state) : undefined
    since()
    capacities = [{ ...capacities[0]!, capacity: 0, fault: lost }, capacities[1]!]
    residency.deviceFailed('gpu0', lost, isFatal)
    return { state, asked }
  }

  test('loses its engines, whose models are loaded on another one for what waits', () => {
    const { state } = faulty(true, true)
    expect(since()).toEqual([`kill e1: gpu0 is not used any more: ${lost}`])
    const second = ask(state)
    expect(since()).toEqual(['start e2 a'])
    expect(state.residents.at(-1)!.devices).toEqual(['gpu1'])
    residency.exited('e1', 'killed')
    residency.ready('e2')
    expect(second.resident?.engineId).toBe('e2')
    // The end of the engine was not its own fault.
    expect(state.failures).toBeNull()
  })

  test('lets an engine that works end its requests', () => {
    const { state, asked } = faulty(true, false)
    expect(since()).toEqual([])
    residency.release(asked!.resident!, 5)
    expect(since()).toEqual(['stop e1: unloaded'])
    residency.exited('e1', 'stopped')
    ask(state)
    expect(state.residents[0]!.devices).toEqual(['gpu1'])
  })
})

test('a booking grows to the measured use and never shrinks', () => {
  const state = warm('a', 10)
  residency.measured('e1', [18 * GiB])
  residency.measured('e1', [2 * GiB])
  expect(state.residents[0]).toMatchObject({ bytes: 18 * GiB, bookedBytes: 10 * GiB, usedBytes: 2 * GiB })
  ask(stateOf('b', 10))
  expect(since()).toEqual(["stop e1: to make room for 'b'"])
})

test('when a GPU appears, a model that could not be placed is loaded', () => {
  capacities = []
  const state = stateOf('a', 10, { replicas: { min: 1, max: 1 } })
  residency.refresh()
  expect(residency.activity(state)).toMatchObject({
    status: 'unavailable',
    reason: expect.stringMatching(/found none/),
  })
  capacities = [{ id: 'gpu0', kind: 'gpu', capacity: 24 * GiB }]
  residency.refresh()
  expect(since()).toEqual(['start e1 a'])
  expect(residency.activity(state)).toMatchObject({ status: 'loading', reason: null })
})

test('events of engines that no longer exist change nothing', () => {
  residency.ready('x')
  residency.startFailed('x', '')
  residency.exited('x', '')
  residency.settled('x')
  residency.stuck('x', '')
  residency.measured('x', [1])
  residency.tick()
  expect(since()).toEqual([])
})

describe('a changed configuration', () => {
  const changed = (id: string, of: object = {}, gigabytes = 20) => stateOf(id, gigabytes, { args: ['--new'], ...of })

  test('waiting callers move to the new state, keep their order, and can still give up', () => {
    const asked = [ask(stateOf('a', 20, {}, 2)), ask(stateOf('a', 20, {}, 2)), ask(stateOf('a', 20, {}, 2))]
    expect(since()).toEqual(['start e1 a'])
    changed('a')
    residency.refresh()
    expect(since()).toEqual(['stop e1: its configuration or its devices have changed'])
    residency.startFailed('e1', 'stopped')
    expect(since()).toEqual(['settle e2'])
    residency.settled('e2')
    asked[0]!.cancel()
    residency.ready('e2')
    expect(asked.map(one => one.resident?.engineId)).toEqual([undefined, 'e2', 'e2'])
  })

  test('an engine with requests stops after them and accepts no new ones; the new one waits for memory', () => {
    warm('a')
    const running = ask(stateOf('a'))
    const next = ask(changed('a'))
    expect(since()).toEqual([])
    expect(next).not.toHaveProperty('resident')
    expect(residency.activity(residency.find('a')!).reason).toBe("'a' waits for the memory of 'a (before its change)'.")
    residency.release(running.resident!, 5)
    expect(since()).toEqual(['stop e1: unloaded'])
    residency.exited('e1', 'unloaded')
    residency.settled('e2')
    residency.ready('e2')
    expect(next.resident?.engineId).toBe('e2')
  })

  test('with memory for both, the new engine is ready before the old one has stopped', () => {
    warm('a', 8)
    const running = ask(stateOf('a', 8))
    changed('a', {}, 8)
    residency.refresh()
    expect(since()).toEqual(['start e2 a'])
    residency.ready('e2')
    expect(ask(residency.find('a')!).resident?.engineId).toBe('e2')
    residency.release(running.resident!, 5)
    expect(since()).toEqual(['stop e1: unloaded'])
  })

  test('a model that was unloaded on request is not loaded because of it', () => {
    warm('a')
    residency.unload('a')
    residency.exited('e1', 'unloaded')
    changed('a')
    residency.refresh()
    expect(since()).toEqual(['stop e1: unloaded'])
  })

  test('failures of the old engine do not delay the new one', () => {
    const state = stateOf('a')
    ask(state)
    residency.startFailed('e1', 'no such file')
    expect(ask(state, 10)).toHaveProperty('failure')
    since()
    ask(changed('a'))
    expect(since()).toEqual(['settle e2'])
  })

  test('requests for a removed model are refused by name, also through the old state', () => {
    const state = stateOf('a')
    const waiting = ask(state)
    since()
    residency.removeModel('a')
    expect(waiting.failure).toMatchObject({
      code: 'model_not_found',
      message: expect.stringContaining("'a'") as string,
    })
    expect(since()).toEqual(['stop e1: its configuration or its devices have changed'])
    expect(ask(state).failure?.code).toBe('model_not_found')
    expect(residency.find('a')).toBeUndefined()
  })

  test('a change that does not affect the engine keeps it', () => {
    const state = warm('a', 20, { idle_ttl: 60_000 })
    expect(stateOf('a', 20, { idle_ttl: 1_000, max_queue: 1 })).toBe(state)
    residency.tick()
    pass(1_500)
    expect(since()).toEqual(['stop e1: idle'])
  })
})

describe('background work', () => {
  test('is loaded after a model with interactive requests that began to wait with it', () => {
    warm('a')
    const running = ask(residency.find('a')!)
    for (let n = 0; n < 3; n++) ask(residency.find('a')!, 300_000)
    ask(stateOf('b'), 300_000, true, true)
    ask(stateOf('c'), 300_000)
    residency.release(running.resident!, 10)
    for (const resident of residency.residents()) while (resident.leases > 0) residency.release(resident, 10)
    expect(since()).toEqual(["stop e1: to make room for 'c'"])
  })

  test('is loaded before interactive requests that came later', () => {
    warm('a')
    const running = ask(residency.find('a')!)
    ask(stateOf('b'), 300_000, true, true)
    pass(5_000)
    ask(stateOf('c'), 300_000)
    residency.release(running.resident!, 10)
    expect(since()).toEqual(["stop e1: to make room for 'b'"])
  })
})

describe('an engine that asked for a pause', () => {
  test('gets no request before it ends, then one, and the others once it accepts that', () => {
    const state = warm('a', 20, {}, 4)
    const refused = ask(state)
    residency.paused('e1', 20_000)
    residency.release(refused.resident!, null)
    const waiting = [ask(state, 60_000), ask(state, 60_000), ask(state, 60_000)]
    expect(residency.activity(state)).toMatchObject({
      status: 'warm',
      reason: "The engine of 'a' takes no requests for another 20 s, as it has asked (Retry-After).",
      etaMs: 20_000,
    })
    pass(19_999)
    expect(waiting.map(one => one.resident?.engineId)).toEqual([undefined, undefined, undefined])
    pass(1)
    expect(waiting.map(one => one.resident?.engineId)).toEqual(['e1', undefined, undefined])
    residency.accepted('e1')
    expect(waiting.map(one => one.resident?.engineId)).toEqual(['e1', 'e1', 'e1'])
    expect(residency.activity(state).reason).toBeNull()
  })

  test('that refuses the first request again is left alone for as long as it then asks', () => {
    const state = warm('a', 20, {}, 4)
    residency.paused('e1', 1_000)
    const [first, second] = [ask(state, 60_000), ask(state, 60_000)]
    pass(1_000)
    residency.paused('e1', 7_000)
    residency.release(first.resident!, null, true)
    pass(6_999)
    expect(second.resident).toBeUndefined()
    pass(1)
    expect(second.resident?.engineId).toBe('e1')
  })

  test('whose first request fails otherwise gets another one', () => {
    const state = warm('a', 20, {}, 4)
    residency.paused('e1', 1_000)
    const [first, second, third] = [ask(state, 60_000), ask(state, 60_000), ask(state, 60_000)]
    pass(1_000)
    residency.release(first.resident!, null, true)
    expect([second.resident?.engineId, third.resident]).toEqual(['e1', undefined])
  })

  test('refuses at once those whose wait ends before it, with the time that is left', () => {
    const state = warm('a', 20, {}, 4)
    residency.paused('e1', 20_000)
    const patient = ask(state, 21_000)
    pass(5_000)
    const late = ask(state, 10_000)
    expect(late.failure).toMatchObject({ code: 'no_capacity', retryAfterMs: 15_000, askedByEngine: true })
    pass(15_000)
    expect(patient.resident?.engineId).toBe('e1')
  })

  test('is no obstacle where another engine of the model is ready', () => {
    const state = warm('a', 10, { replicas: { min: 2, max: 2 } })
    residency.refresh()
    residency.ready('e2')
    residency.paused('e1', 20_000)
    expect([ask(state).resident?.engineId, ask(state).resident?.engineId]).toEqual(['e2', 'e2'])
  })
})
