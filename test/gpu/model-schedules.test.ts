import { expect, test } from 'vitest'
import { Model } from '../../core/models/model.ts'
import { dueActions, scheduleStates } from '../../core/models/model-schedule.ts'
import { openModelSchedules } from '../../gpu/model-schedules.ts'
import { keptLog } from './launcher/_launch.ts'

const begin = Date.parse('2026-11-30T07:00:00Z')
const minute = 60_000
const hour = 60 * minute

const modelWith = (id: string, schedule?: object[]): Model =>
  Model.parse({ id, engine: 'custom', command: ['{port}'], schedule })
const office = { at: '0 8 * * mon-fri', do: 'pin', for: '10h', timezone: 'UTC' }

/** The schedules of these models in virtual time. */
function opened(models: Model[], at = begin) {
  let now = at
  let timers: { at: number; run: () => void }[] = []
  const done: string[] = []
  const schedules = openModelSchedules({
    models: () => models,
    clock: {
      epoch: () => now,
      after(ms, run) {
        const timer = { at: now + ms, run }
        timers.push(timer)
        return () => void (timers = timers.filter(other => other !== timer))
      },
    },
    log: keptLog(),
    changed: () => void done.push(`pinned: ${kept()}`),
    load: async ({ id }) => void done.push(`load ${id}`),
    unload: id => void done.push(`unload ${id}`),
  })
  const kept = () =>
    schedules
      .models()
      .flatMap(({ id, replicas }) => (replicas.min > 0 ? [id] : []))
      .join()
  schedules.reconfigured()
  return {
    schedules,
    kept,
    done: () => done.splice(0),
    timers: () => timers.length,
    set: (time: number) => void (now = time),
    pass: (ms: number): void => {
      const end = now + ms
      for (;;) {
        const next = timers.toSorted((a, b) => a.at - b.at)[0]
        if (!next || next.at > end) break
        timers = timers.filter(other => other !== next)
        now = Math.max(now, next.at)
        next.run()
      }
      now = end
    },
  }
}

test('a pinned model is kept loaded for its hours, and stays the same object meanwhile', () => {
  const model = modelWith('a', [office])
  const { schedules, pass, done, kept } = opened([model, modelWith('b')])
  expect(schedules.models()[0]).toBe(model)
  pass(hour)
  expect(done()).toEqual(['pinned: a', 'load a'])
  expect(schedules.models()[0]).toBe(schedules.models()[0])
  expect(schedules.models()[0]!.replicas).toEqual({ min: 1, max: 1 })
  pass(9 * hour)
  expect(done()).toEqual([])
  pass(hour)
  expect(done()).toEqual(['pinned: '])
  expect(kept()).toBe('')
  pass(14 * hour)
  expect(done()).toEqual(['pinned: a', 'load a'])
})

test('a server that starts within the hours keeps it loaded', () => {
  expect(opened([modelWith('a', [office])], begin + 5 * hour).kept()).toBe('a')
})

test('load and unload happen once at their time, in the order of their times', () => {
  const { pass, done } = opened([
    modelWith('night', [
      { at: '0 22 * * *', do: 'load', timezone: 'UTC' },
      { at: '30 7 * * *', do: 'unload', timezone: 'UTC' },
    ]),
  ])
  pass(29 * minute)
  expect(done()).toEqual([])
  pass(2 * minute)
  expect(done()).toEqual(['unload night'])
  pass(15 * hour)
  expect(done()).toEqual(['load night'])
})

test('after the machine slept, what was missed happens once; after the clock was set back, nothing twice', () => {
  const { pass, done, set } = opened([modelWith('a', [{ at: '0 * * * *', do: 'unload', timezone: 'UTC' }])])
  set(begin + 5.5 * hour)
  pass(1)
  expect(done()).toEqual(['unload a'])
  set(begin + 4.5 * hour)
  pass(hour)
  expect(done()).toEqual([])
})

test('without schedules and without the server there is no timer', () => {
  expect(opened([modelWith('a')]).timers()).toBe(0)
  const { schedules, timers } = opened([modelWith('a', [office])])
  expect(timers()).toBe(1)
  schedules.close()
  expect(timers()).toBe(0)
})

test('a disabled model has no schedule', () => {
  const off = { ...modelWith('a', [office]), enabled: false }
  const { schedules, pass, done } = opened([off])
  pass(24 * hour)
  expect([done(), schedules.of(off)]).toEqual([[], []])
})

test('what a schedule does now and next, for people', () => {
  const { schedule } = modelWith('a', [office, { at: '0 22 * * *', do: 'unload', timezone: 'UTC' }])
  expect(scheduleStates(schedule!, begin + 2 * hour)).toEqual([
    { do: 'pin', nextAt: begin + 25 * hour, until: begin + 11 * hour },
    { do: 'unload', nextAt: begin + 15 * hour, until: null },
  ])
  expect(dueActions(schedule!, begin, begin + 24 * hour)).toEqual(['pin', 'unload'])
})

test.each<[entry: object, message: RegExp]>([
  [{ at: '0 8 * *', do: 'load' }, /five fields/],
  [{ at: '0 0 30 2 *', do: 'load' }, /never comes/],
  [{ at: '0 8 * * *', do: 'pin' }, /is needed with 'do: pin'/],
  [{ at: '0 8 * * *', do: 'pin', for: '1s' }, /a minute at least/],
  [{ at: '0 8 * * *', do: 'load', for: '1h' }, /only for 'do: pin'/],
  [{ at: '0 8 * * *', do: 'load', timezone: 'Mars/Base' }, /no time zone/],
  [{ at: '0 8 * * *', do: 'sleep' }, /Invalid option/],
])('%j is refused', (entry, message) => {
  expect(() => modelWith('a', [entry])).toThrow(message)
})
