import { expect, test } from 'vitest'
import { openCardUse } from '../../../gpu/placement/card-use.ts'

const GiB = 2 ** 30

function open() {
  let now = 0
  const use = openCardUse(() => now)
  /** Measures a card with these engines: gigabytes that are booked for each, negative for one that is not ready. */
  const measured = (used: number, engines: Record<string, number>, byEngine: Record<string, number> | null = null) =>
    use.measured({
      id: 'gpu0',
      usedBytes: used * GiB,
      engines: Object.entries(engines).map(([engineId, booked]) => {
        return { engineId, bytes: Math.abs(booked) * GiB, isReady: booked > 0 }
      }),
      byEngine: byEngine && new Map(Object.entries(byEngine).map(([id, bytes]) => [id, bytes * GiB])),
    })
  const engine = (id: string) => (use.engineOn('gpu0', id) ?? Number.NaN) / GiB
  return { use, measured, engine, foreign: () => use.foreignOn('gpu0') / GiB, wait: (ms: number) => (now += ms) }
}

test('memory of an ended engine is taken for that of another program only when it stays', () => {
  const { use, measured, foreign, wait } = open()
  measured(40, { a: 40, b: -10 })
  use.ended(['gpu0', 'gpu1'])
  measured(40, {})
  expect([foreign(), use.isUnsettled()]).toEqual([0, true])
  wait(2_000)
  measured(30, {})
  expect([foreign(), use.isUnsettled()]).toEqual([30, false])
})

test('engines that become ready together share what is in use by their bookings', () => {
  const { measured, engine, foreign } = open()
  measured(5, {})
  measured(35, { a: -10, b: -5 })
  expect([foreign(), engine('a')]).toEqual([5, Number.NaN])
  measured(35, { a: 10, b: 5 })
  expect([foreign(), engine('a'), engine('b')]).toEqual([5, 20, 10])
})

test('an engine that uses no memory of the card hides no other program', () => {
  const { measured, engine, foreign } = open()
  measured(5, {})
  measured(5, { a: 10 })
  expect(engine('a')).toBe(0)
  measured(30, { a: 10 })
  expect(foreign()).toBe(20)
})

test('the driver is asked for details when an engine is new and when the use has changed, not while one loads', () => {
  const { use, measured } = open()
  const needsDetails = (used: number, isReady: boolean) =>
    use.needsDetails({ id: 'gpu0', usedBytes: used * GiB, engines: [{ engineId: 'a', bytes: 9 * GiB, isReady }] })
  measured(0, {})
  expect([needsDetails(9, false), needsDetails(9, true)]).toEqual([false, true])
  measured(9, { a: 9 }, { a: 8 })
  expect([needsDetails(9, true), needsDetails(9.05, true), needsDetails(9.1, true)]).toEqual([false, false, true])
})

test('of engines that were there before the first measurement, only what is beyond their bookings is of others', () => {
  const { measured, engine, foreign } = open()
  measured(35, { a: -20, b: -10 })
  expect(foreign()).toBe(5)
  measured(35, { a: 20, b: 10 })
  expect([foreign(), engine('a'), engine('b')]).toEqual([5, 20, 10])
  const alone = open()
  alone.measured(12, { a: -20 })
  expect(alone.foreign()).toBe(0)
})
