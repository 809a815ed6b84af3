import { beforeEach, describe, expect, test } from 'vitest'
import type { Failure } from '../../core/failure.ts'
import { defaultRules } from '../../gpu/effects.ts'
import type { Line, Resident } from '../../gpu/line.ts'
import type { Place } from '../../gpu/place.ts'
import { openResidency, type Residency } from '../../gpu/residency.ts'
import { GiB, modelOf, wantedOf } from './_line.ts'

/** Everything that was decided, in order, as short words. */
let done: string[]
let now: number
let wakeAt: number
let residency: Residency
let places: Place[]
let engineCount: number

beforeEach(() => {
  done = []
  now = 0
  wakeAt = Number.POSITIVE_INFINITY
  engineCount = 0
  places = [{ id: 'gpu0', kind: 'nvidia', capacity: 24 * GiB }]
  residency = openResidency(
    {
      now: () => now,
      start: resident => void done.push(`start ${resident.engineId} ${resident.line.model.id}`),
      settle: resident => void done.push(`settle ${resident.engineId}`),
      stop: (resident, reason, kill) => void done.push(`${kill ? 'kill' : 'stop'} ${resident.engineId}: ${reason}`),
      wake: at => {
        wakeAt = at
      },
      newEngineId: () => `e${++engineCount}`,
    },
    () => places,
    { ...defaultRules, holdMs: 10_000 },
  )
})

/** What has been decided since the last time this was asked. */
const since = (): string[] => done.splice(0)

/** Lets time pass, with the timer that was asked for. */
function pass(ms: number): void {
  const end = now + ms
  while (wakeAt <= end) {
    now = Math.max(now, wakeAt)
    wakeAt = Number.POSITIVE_INFINITY
    residency.tick()
  }
  now = end
}

const lineOf = (id: string, gigabytes = 20, of: object = {}, slots = 2): Line =>
  residency.line(modelOf(id, of), wantedOf(id, gigabytes), slots)

interface Asked {
  resident?: Resident
  failure?: Failure
  waitedMs?: number
  loadedMs?: number
  cancel(): void
}

/** Somebody who asks for a slot, at once or by waiting. */
function ask(line: Line, waitMs = 30_000, slot = true, background = false): Asked {
  const asked: Asked = { cancel: () => {} }
  const resident = slot ? residency.take(line.model.id) : undefined
  if (resident) return { ...asked, resident, waitedMs: 0 }
  asked.cancel = residency.request(line, {
    slot,
    background,
    waitMs,
    grant: (resident, waitedMs, loadedMs) => void Object.assign(asked, { resident, waitedMs, loadedMs }),
    refuse: failure => void (asked.failure = failure),
  })
  return asked
}

/** A line with one ready engine. */
function warm(id: string, gigabytes = 20, of: object = {}, slots = 2): Line {
  const line = lineOf(id, gigabytes, of, slots)
  ask(line, 30_000, false)
  residency.ready(line.residents[0]!.engineId)
  since()
  return line
}

describe('loading', () => {
  test('the first request loads; those that come meanwhile wait for the same engine, in their order', () => {
    const line = lineOf('a', 20, {}, 2)
    const asked = [ask(line), ask(line), ask(line)]
    expect(since()).toEqual(['start e1 a'])
    now = 700
    residency.ready('e1')
    expect(asked.map(one => one.resident?.engineId)).toEqual(['e1', 'e1', undefined])
    expect(asked[0]).toMatchObject({ waitedMs: 700, loadedMs: 700 })
    now = 900
    residency.release(asked[0]!.resident!, 200)
    expect(asked[2]).toMatchObject({ waitedMs: 900, loadedMs: 700 })
  })

  test('a ready engine with a free slot is taken at once, and not before those who wait', () => {
    const line = warm('a', 20, {}, 1)
    const first = ask(line)
    expect(first.waitedMs).toBe(0)
    const second = ask(line)
    residency.release(first.resident!, 5)
    expect(second.resident?.engineId).toBe('e1')
    expect(residency.take('a')).toBeUndefined()
    residency.release(second.resident!, 5)
    expect(residency.take('a')?.engineId).toBe('e1')
    expect(residency.take('unknown')).toBeUndefined()
  })

  test('asking for the model alone takes no slot', () => {
    const line = lineOf('a')
    const loaded = ask(line, 1e9, false)
    residency.ready('e1')
    expect(loaded.resident?.leases).toBe(0)
    expect(ask(line, 1e9, false).resident?.engineId).toBe('e1')
  })

  test('who gives up loses his place; the load goes on', () => {
    const line = lineOf('a', 20, {}, 1)
    const [first, second] = [ask(line), ask(line)]
    first.cancel()
    residency.ready('e1')
    expect(first).not.toHaveProperty('resident')
    expect(second.resident?.engineId).toBe('e1')
    first.cancel()
  })

  test('two models that fit are loaded beside each other', () => {
    ask(lineOf('a', 10))
    ask(lineOf('b', 10))
    expect(since()).toEqual(['start e1 a', 'start e2 b'])
  })

  test('what cannot fit anywhere is refused with the reason', () => {
    const { failure } = ask(lineOf('big', 80))
    expect(failure).toMatchObject({ code: 'no_capacity' })
    expect(failure?.message).toMatch(/'big' needs 80\.0 GiB/)
    expect(residency.activity(residency.find('big')!)).toMatchObject({ status: 'unavailable' })
  })
})

describe('waiting is bounded', () => {
  test('while loading: model_warming_up, with what the last load took', () => {
    const line = warm('a')
    residency.unload('a')
    residency.gone('e1', '')
    line.pace.loadMs = 60_000
    const asked = ask(line, 5_000)
    pass(4_999)
    expect(asked.failure).toBeUndefined()
    pass(1)
    expect(asked.failure).toMatchObject({ code: 'model_warming_up', retryAfterMs: 55_000 })
  })

  test('while busy: no_capacity, with what a request takes', () => {
    const line = warm('a', 20, {}, 1)
    line.pace.runMs = 8_000
    ask(line)
    const asked = ask(line, 1_000)
    pass(1_000)
    expect(asked.failure).toMatchObject({ code: 'no_capacity', retryAfterMs: 8_000 })
    expect(asked.failure?.message).toMatch(/All slots of 'a' are busy/)
  })

  test('everyone waits as long as he wanted, however long the others do', () => {
    const line = lineOf('a')
    const asked = [3_000, 1_000, 2_000].map(waitMs => ask(line, waitMs))
    const over: number[] = []
    for (let at = 1; at <= 3; at++) {
      pass(1_000)
      over.push(asked.filter(one => one.failure).length)
    }
    expect(over).toEqual([1, 2, 3])
  })

  test('no wait at all still starts the load', () => {
    const asked = ask(lineOf('a'), 0)
    expect(asked.failure?.code).toBe('model_warming_up')
    expect(since()).toEqual(['start e1 a'])
  })

  test('one more than max_queue is refused at once', () => {
    const line = warm('a', 20, { max_queue: 2 }, 1)
    const asked = [ask(line), ask(line), ask(line), ask(line)]
    expect(asked.map(one => one.failure?.code)).toEqual([undefined, undefined, undefined, 'queue_full'])
    asked[1]!.cancel()
    expect(ask(line).failure).toBeUndefined()
  })

  test('max_queue 0: a free slot or nothing, but the model is loaded for the next one', () => {
    const line = lineOf('a', 20, { max_queue: 0 }, 1)
    expect(ask(line).failure?.code).toBe('model_warming_up')
    expect(since()).toEqual(['start e1 a'])
    residency.ready('e1')
    expect(ask(line).resident?.engineId).toBe('e1')
    expect(ask(line).failure?.code).toBe('queue_full')
  })
})

describe('eviction', () => {
  test('an idle model makes room; the new one starts when the old one is gone and the card shows it', () => {
    warm('a')
    const asked = ask(lineOf('b'))
    expect(since()).toEqual(["stop e1: to make room for 'b'"])
    residency.gone('e1', '')
    expect(since()).toEqual(['settle e2'])
    residency.settled('e2')
    expect(since()).toEqual(['start e2 b'])
    residency.ready('e2')
    expect(asked.resident?.engineId).toBe('e2')
  })

  test('the least recently used one leaves', () => {
    const a = warm('a', 10)
    warm('b', 10)
    now = 100
    residency.release(ask(a).resident!, 1)
    ask(lineOf('c', 10))
    expect(since()).toEqual(["stop e2: to make room for 'c'"])
  })

  test('a busy one is waited for and never stopped before it is done', () => {
    const a = warm('a')
    const running = ask(a)
    const asked = ask(lineOf('b'))
    pass(9_999)
    expect(since()).toEqual([])
    residency.release(running.resident!, 5)
    expect(since()).toEqual(["stop e1: to make room for 'b'"])
    expect(asked.failure).toBeUndefined()
  })

  test('a busy one that never rests must let the other have its turn', () => {
    const a = warm('a', 20, {}, 2)
    let running = ask(a)
    const other = ask(lineOf('b'), 60_000)
    for (let at = 0; at < 9; at++) {
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
    residency.gone('e1', '')
    residency.settled('e2')
    residency.ready('e2')
    expect(other.resident?.engineId).toBe('e2')
    // And then it is the first one's turn again.
    residency.release(other.resident!, 10)
    expect(since().at(-1)).toBe("stop e2: to make room for 'a'")
  })

  test('who gives up gives the turn up', () => {
    const a = warm('a', 20, {}, 2)
    ask(a)
    const other = ask(lineOf('b'), 60_000)
    pass(10_000)
    expect(residency.take('a')).toBeUndefined()
    other.cancel()
    expect(residency.take('a')).toBeDefined()
  })

  test('one that is loading is not stopped for another', () => {
    ask(lineOf('a'))
    const other = ask(lineOf('b'), 60_000)
    expect(since()).toEqual(['start e1 a'])
    pass(30_000)
    expect(since()).toEqual([])
    expect(residency.activity(residency.find('b')!).reason).toMatch(/'b' waits for 'a'/)
    expect(other.failure).toBeUndefined()
  })

  test('a model that is kept loaded stays', () => {
    const line = lineOf('a', 20, { replicas: { min: 1, max: 1 } })
    residency.refresh()
    residency.ready('e1')
    pass(600_000)
    expect(since()).toEqual(['start e1 a'])
    expect(ask(lineOf('b')).failure?.message).toMatch(/does not fit beside 'a', which is kept loaded/)
    expect(line.residents).toHaveLength(1)
  })
})

describe('unload', () => {
  test('whoever waits for the model to be loaded is told, and does not have it loaded again', () => {
    const loading = ask(lineOf('a'), Number.POSITIVE_INFINITY, false)
    residency.unload('a')
    expect(since()).toEqual(['start e1 a', 'stop e1: unloaded'])
    residency.startFailed('e1', 'Engine was stopped while it was loading.')
    expect(loading.failure).toMatchObject({ code: 'conflict' })
    expect(since()).toEqual([])
  })

  test('whoever waits for a slot gets a new engine', () => {
    const line = lineOf('a')
    const asked = ask(line)
    residency.unload('a')
    residency.startFailed('e1', 'Engine was stopped while it was loading.')
    residency.settled('e2')
    expect(since()).toEqual(['start e1 a', 'stop e1: unloaded', 'settle e2', 'start e2 a'])
    residency.ready('e2')
    expect(asked.resident?.engineId).toBe('e2')
  })

  test('a load that waits for busy room takes nobody there out of turn any more', () => {
    const busy = warm('b')
    ask(busy)
    const loading = ask(lineOf('a'), Number.POSITIVE_INFINITY, false)
    expect(residency.find('a')!.reason).not.toBeNull()
    residency.unload('a')
    expect(loading.failure?.message).toMatch(/'a' was unloaded/)
    pass(60_000)
    expect(ask(busy).resident?.engineId).toBe('e1')
    expect(residency.find('a')!.reason).toBeNull()
  })
})

describe('idle', () => {
  test('after idle_ttl without a request the model is unloaded, counted from the last one', () => {
    const line = warm('a', 20, { idle_ttl: 1_000 })
    pass(900)
    residency.release(ask(line).resident!, 1)
    pass(999)
    expect(since()).toEqual([])
    pass(1)
    expect(since()).toEqual(['stop e1: idle'])
  })

  test('a running request keeps it, however long', () => {
    const line = warm('a', 20, { idle_ttl: 1_000 })
    const running = ask(line)
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
  const start = (line: Line) => {
    const asked = ask(line)
    const id = line.residents[0]?.engineId
    return { asked, id }
  }

  test('those who wait are told why the start failed; the next attempt comes a second later', () => {
    const line = lineOf('a')
    const { asked, id } = start(line)
    residency.startFailed(id!, 'Engine exited (3): CUDA out of memory')
    expect(asked.failure).toMatchObject({
      code: 'worker_error',
      message: "Model 'a' cannot be started: Engine exited (3): CUDA out of memory",
      retryAfterMs: 1_000,
    })
    since()
    const next = ask(line)
    expect(since()).toEqual([])
    pass(999)
    expect(since()).toEqual([])
    pass(1)
    expect(since()).toEqual(['start e2 a'])
    expect(next.failure).toBeUndefined()
  })

  test('who would wait in vain during the pause is told at once', () => {
    const line = lineOf('a')
    residency.startFailed(start(line).id!, 'no')
    expect(ask(line, 500).failure).toMatchObject({ code: 'no_capacity', retryAfterMs: 1_000 })
  })

  test('five starts without a success open the circuit; after the pause one attempt decides', () => {
    const line = lineOf('a')
    for (let attempt = 1; attempt <= 5; attempt++) {
      const { id } = start(line)
      residency.startFailed(id!, `no ${attempt}`)
      if (attempt < 5) pass(1_000 * 2 ** (attempt - 1))
    }
    since()
    const refused = ask(line, 60_000)
    expect(refused.failure).toMatchObject({ code: 'no_capacity', retryAfterMs: 16_000 })
    expect(refused.failure?.message).toBe("Model 'a' cannot be started: no 5")
    expect(residency.activity(line)).toMatchObject({ status: 'unavailable', engineStarts: 5, engineFailures: 5 })
    pass(16_000)
    expect(since()).toEqual([])
    const half = ask(line)
    expect(since()).toEqual(['start e6 a'])
    residency.ready('e6')
    residency.release(half.resident!, 10)
    expect(line.failures).toBeNull()
  })

  test('getting ready is no success: an engine that dies of every request opens the circuit too', () => {
    const line = lineOf('a')
    for (let attempt = 1; attempt <= 5; attempt++) {
      const asked = ask(line)
      const id = line.residents[0]!.engineId
      residency.ready(id)
      residency.gone(id, 'Engine exited (1)')
      residency.release(asked.resident!, null)
      if (attempt < 5) pass(1_000 * 2 ** (attempt - 1))
    }
    expect(ask(line).failure?.code).toBe('no_capacity')
  })

  test('an engine that has served well and dies is started again after a second', () => {
    const line = warm('a')
    residency.release(ask(line).resident!, 10)
    const running = ask(line)
    residency.gone('e1', 'Engine exited (SIGSEGV)')
    residency.release(running.resident!, null)
    const next = ask(line)
    pass(1_000)
    expect(since()).toEqual(['start e2 a'])
    residency.ready('e2')
    expect(next.resident?.engineId).toBe('e2')
    expect(line.failures?.count).toBe(1)
  })

  test('a slot given back by a dead engine goes to nobody', () => {
    const line = warm('a', 20, {}, 1)
    const running = ask(line)
    const waiting = ask(line)
    residency.gone('e1', 'Engine exited (1)')
    residency.release(running.resident!, null)
    expect(waiting.resident).toBeUndefined()
    expect(waiting.failure).toBeUndefined()
  })

  test('an engine that does nothing any more is killed, and its room is free when it is gone', () => {
    const line = warm('a', 20, {}, 1)
    const running = ask(line)
    const waiting = ask(line)
    residency.stuck('e1', 'no progress')
    expect(since()).toEqual(['kill e1: no progress'])
    residency.release(running.resident!, null)
    residency.gone('e1', 'no progress')
    pass(1_000)
    expect(since()).toEqual(['start e2 a'])
    residency.ready('e2')
    expect(waiting.resident?.engineId).toBe('e2')
  })

  test('what is kept loaded is started again and again, ever more slowly', () => {
    lineOf('a', 20, { replicas: { min: 1, max: 1 } })
    residency.refresh()
    for (let at = 1; at <= 3; at++) {
      residency.startFailed(`e${at}`, 'no')
      pass(300_000)
    }
    expect(since()).toEqual(['start e1 a', 'start e2 a', 'start e3 a', 'start e4 a'])
  })
})

describe('replicas', () => {
  test('a second engine is started when the first is full and there is room, and leaves when it is idle', () => {
    const line = warm('a', 10, { replicas: { min: 0, max: 2 }, idle_ttl: 1_000 }, 1)
    const first = ask(line)
    const second = ask(line)
    expect(since()).toEqual(['start e2 a'])
    residency.ready('e2')
    expect(second.resident?.engineId).toBe('e2')
    const third = ask(line)
    expect(since()).toEqual([])
    residency.release(first.resident!, 1)
    expect(third.resident?.engineId).toBe('e1')
    pass(500)
    residency.release(second.resident!, 1)
    pass(1_000)
    expect(since()).toEqual(['stop e2: idle'])
  })

  test('of two engines the less busy one takes the next request', () => {
    const line = warm('a', 10, { replicas: { min: 2, max: 2 } }, 2)
    residency.refresh()
    residency.ready('e2')
    const first = ask(line).resident!.engineId
    const second = ask(line).resident!.engineId
    expect(new Set([first, second])).toEqual(new Set(['e1', 'e2']))
  })

  test('a second engine stops nobody', () => {
    const line = warm('a', 10, { replicas: { min: 0, max: 2 } }, 1)
    warm('b', 12)
    ask(line)
    ask(line)
    expect(since()).toEqual([])
  })
})

describe('unloading and closing', () => {
  test('unload waits for what runs and takes nothing new', () => {
    const line = warm('a')
    const running = ask(line)
    residency.unload('a')
    expect(since()).toEqual([])
    expect(residency.take('a')).toBeUndefined()
    residency.release(running.resident!, 1)
    expect(since()).toEqual(['stop e1: unloaded'])
  })

  test('an idle one goes at once, a loading one too, and what is kept loaded stays away until asked for', () => {
    const line = lineOf('a', 10, { replicas: { min: 1, max: 1 } })
    residency.refresh()
    residency.unload('a')
    residency.gone('e1', '')
    pass(600_000)
    expect(since()).toEqual(['start e1 a', 'stop e1: unloaded'])
    ask(line)
    expect(since()).toEqual(['start e2 a'])
    residency.unload('nobody')
  })

  test('closing refuses those who wait and those who come, and starts nothing any more', () => {
    const line = lineOf('a', 20, { replicas: { min: 1, max: 1 } })
    const waiting = ask(line)
    residency.close()
    expect(waiting.failure?.code).toBe('shutting_down')
    expect(ask(line).failure?.code).toBe('shutting_down')
    residency.ready('e1')
    residency.stopAll('end')
    residency.gone('e1', 'end')
    expect(since()).toEqual(['start e1 a', 'stop e1: end'])
    expect(residency.residents()).toEqual([])
  })

  test('a load that has not begun is dropped like one that has', () => {
    warm('a')
    ask(lineOf('b')).cancel()
    residency.unload('b')
    expect(since()).toEqual(["stop e1: to make room for 'b'", 'stop e2: unloaded'])
    residency.gone('e2', '')
    residency.gone('e1', '')
    residency.settled('e2')
    expect(since()).toEqual([])
  })
})

test('a booking grows to what was measured, never shrinks', () => {
  const line = warm('a', 10)
  residency.measured('e1', 18 * GiB)
  residency.measured('e1', 2 * GiB)
  expect(line.residents[0]!.bytes).toBe(18 * GiB)
  ask(lineOf('b', 10))
  expect(since()).toEqual(["stop e1: to make room for 'b'"])
})

test('when a card appears, what could not be placed can', () => {
  places = []
  const line = lineOf('a', 10, { replicas: { min: 1, max: 1 } })
  residency.refresh()
  expect(residency.activity(line)).toMatchObject({ status: 'unavailable', reason: expect.stringMatching(/found none/) })
  places = [{ id: 'gpu0', kind: 'nvidia', capacity: 24 * GiB }]
  residency.refresh()
  expect(since()).toEqual(['start e1 a'])
  expect(residency.activity(line)).toMatchObject({ status: 'loading', reason: null })
})

test('events about engines that are gone change nothing', () => {
  residency.ready('x')
  residency.startFailed('x', '')
  residency.gone('x', '')
  residency.settled('x')
  residency.stuck('x', '')
  residency.measured('x', 1)
  residency.tick()
  expect(since()).toEqual([])
})

describe('another configuration', () => {
  const changed = (id: string, of: object = {}, gigabytes = 20) => lineOf(id, gigabytes, { args: ['--new'], ...of })

  test('who waits goes over to the new line, keeps his place, and can still give it up', () => {
    const asked = [ask(lineOf('a', 20, {}, 2)), ask(lineOf('a', 20, {}, 2)), ask(lineOf('a', 20, {}, 2))]
    expect(since()).toEqual(['start e1 a'])
    changed('a')
    residency.refresh()
    expect(since()).toEqual(['stop e1: the configuration has changed'])
    residency.startFailed('e1', 'stopped')
    expect(since()).toEqual(['settle e2'])
    residency.settled('e2')
    asked[0]!.cancel()
    residency.ready('e2')
    expect(asked.map(one => one.resident?.engineId)).toEqual([undefined, 'e2', 'e2'])
  })

  test('an engine with requests ends after them, takes no new ones, and the new one waits for its room', () => {
    warm('a')
    const running = ask(lineOf('a'))
    const next = ask(changed('a'))
    expect(since()).toEqual([])
    expect(next).not.toHaveProperty('resident')
    expect(residency.activity(residency.find('a')!).reason).toBe(
      "'a' waits for 'a (before its change)' to finish, whose memory it needs.",
    )
    residency.release(running.resident!, 5)
    expect(since()).toEqual(['stop e1: unloaded'])
    residency.gone('e1', 'unloaded')
    residency.settled('e2')
    residency.ready('e2')
    expect(next.resident?.engineId).toBe('e2')
  })

  test('where there is room for both, the new one is there before the old one has ended', () => {
    warm('a', 8)
    const running = ask(lineOf('a', 8))
    changed('a', {}, 8)
    residency.refresh()
    expect(since()).toEqual(['start e2 a'])
    residency.ready('e2')
    expect(ask(residency.find('a')!).resident?.engineId).toBe('e2')
    residency.release(running.resident!, 5)
    expect(since()).toEqual(['stop e1: unloaded'])
  })

  test('one that was unloaded by hand is not loaded for it', () => {
    warm('a')
    residency.unload('a')
    residency.gone('e1', 'unloaded')
    changed('a')
    residency.refresh()
    expect(since()).toEqual(['stop e1: unloaded'])
  })

  test('failures of the old one do not keep the new one from being tried', () => {
    const line = lineOf('a')
    ask(line)
    residency.startFailed('e1', 'no such file')
    expect(ask(line, 10)).toHaveProperty('failure')
    since()
    ask(changed('a'))
    expect(since()).toEqual(['start e2 a'])
  })

  test('what is gone: who waits is refused by name, also who asks the old line later', () => {
    const line = lineOf('a')
    const waiting = ask(line)
    since()
    residency.drop('a')
    expect(waiting.failure).toMatchObject({
      code: 'model_not_found',
      message: expect.stringContaining("'a'") as string,
    })
    expect(since()).toEqual(['stop e1: the configuration has changed'])
    expect(ask(line).failure?.code).toBe('model_not_found')
    expect(residency.find('a')).toBeUndefined()
  })

  test('a change that does not concern the engine keeps it', () => {
    const line = warm('a', 20, { idle_ttl: 60_000 })
    expect(lineOf('a', 20, { idle_ttl: 1_000, max_queue: 1 })).toBe(line)
    residency.tick()
    pass(1_500)
    expect(since()).toEqual(['stop e1: idle'])
  })
})

describe('work that nobody waits for on the line', () => {
  test('lets everybody pass for whom somebody does', () => {
    const line = warm('a', 20, {}, 1)
    const first = ask(line)
    const background = ask(line, 300_000, true, true)
    const caller = ask(line)
    residency.release(first.resident!, 10)
    expect([background.resident, caller.resident]).toEqual([undefined, first.resident])
    residency.release(caller.resident!, 10)
    expect(background.resident).toBe(first.resident)
  })

  test('has its turn all the same once it has waited half a minute', () => {
    const line = warm('a', 20, {}, 1)
    const first = ask(line, 300_000)
    const background = ask(line, 300_000, true, true)
    pass(30_000)
    const caller = ask(line, 300_000)
    residency.release(first.resident!, 10)
    expect([background.resident, caller.resident]).toEqual([first.resident, undefined])
  })

  test('takes no place of those that max_queue allows', () => {
    const line = warm('a', 20, { max_queue: 1 }, 1)
    const first = ask(line)
    const background = ask(line, 300_000, true, true)
    const caller = ask(line)
    const tooMany = ask(line)
    expect(first.resident).toBeDefined()
    expect([background.failure, caller.failure, tooMany.failure?.code]).toEqual([undefined, undefined, 'queue_full'])
  })
})
