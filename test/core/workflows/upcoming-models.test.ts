import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openUpcomingModels } from '../../../core/workflows/upcoming-models.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function open() {
  const told: Record<string, number>[] = []
  const upcoming = openUpcomingModels(models => void told.push(Object.fromEntries(models)))
  return { upcoming, told }
}

test('the fleet is told a moment after other models are next, once for many changes', () => {
  const { upcoming, told } = open()
  upcoming.changed('e1', ['a', 'b'])
  upcoming.changed('e2', ['b'])
  expect(told).toEqual([])
  vi.runAllTimers()
  expect(told).toEqual([{ a: 1, b: 2 }])
  upcoming.changed('e1', ['b'])
  upcoming.changed('e2', [])
  vi.runAllTimers()
  expect(told.at(-1)).toEqual({ b: 1 })
})

test('a change of the counts alone is not told, but is in the map', () => {
  const maps: ReadonlyMap<string, number>[] = []
  const upcoming = openUpcomingModels(models => void maps.push(models))
  upcoming.changed('e1', ['a'])
  vi.runAllTimers()
  upcoming.changed('e2', ['a'])
  vi.runAllTimers()
  expect(maps).toHaveLength(1)
  expect(maps[0]!.get('a')).toBe(2)
})

test('an execution without further nodes leaves nothing behind', () => {
  const { upcoming, told } = open()
  for (let at = 0; at < 20_000; at++) upcoming.changed(`e${at}`, ['a'])
  for (let at = 0; at < 20_000; at++) upcoming.changed(`e${at}`, [])
  upcoming.changed('last', ['b'])
  vi.runAllTimers()
  expect(told).toEqual([{ b: 1 }])
})
